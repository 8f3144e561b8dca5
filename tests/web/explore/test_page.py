"""The page as one file: everything inside, nothing from outside, no code but its own."""

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from nearkin.web.explore import Explorer
from nearkin.web.explore.server import single_page
from tests.cli.conftest import run, run_json
from tests.web.explore.conftest import HOSTILE, N


def data_of(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def test_everything_is_inside_and_hostile_names_stay_data(explorer: Explorer) -> None:
    page = single_page(explorer)
    assert not re.search(r"""(src|href)=["'](?!data:,)|https?://""", page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for code in (script, style):
        assert base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() in policy.group(1)
    assert "unsafe" not in policy.group(1)
    assert HOSTILE not in page
    assert data_of(page)["named"]["0"]["id"] == HOSTILE


def test_its_answers_are_those_of_the_server(explorer: Explorer) -> None:
    data = data_of(single_page(explorer))
    assert data["about"] == json.loads(json.dumps(explorer.about()))
    assert len(data["answers"]) == N
    for row in (0, 60, 119):
        served = json.loads(json.dumps(explorer.item(row)))
        mailed = data["answers"][str(row)]
        assert (mailed["exact"], mailed["found"]) == (served["exact"], served["found"])
        for mine, theirs in zip([mailed["true"], *mailed["coded"]], [served["true"], *served["coded"]], strict=True):
            assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-4)
        assert all(data["named"][r] == about for r, about in served["about"].items())
    lost = np.frombuffer(base64.b64decode(data["columns"]["lost0"]), "<f4")
    np.testing.assert_array_equal(lost, explorer.columns.colours["lost0"].values)


def test_the_command_writes_it(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = run("explore", folder / "idx", "--labels", folder / "labels.npy", "--out", out, "--rows", 30, "-k", 3)
    assert done.exit_code == 0, done.output
    data = data_of(out.read_text(encoding="utf-8"))
    assert len(data["answers"]) == data["about"]["shown"] == 30
    assert {str(row) for answer in data["answers"].values() for row in answer["exact"]} <= data["named"].keys()
    assert [column["name"] for column in data["about"]["layouts"]] == ["pca", "neighbours"]
    assert run("explore", folder / "idx", "--out", tmp_path / "page.txt").exit_code == 2
    said = run_json("explore", folder / "idx", "--out", out, "--overwrite", "--rows", 8, "-k", 3)
    assert (said["out"], said["rows"], said["rows_on_the_page"]) == (str(out), N, 8)
