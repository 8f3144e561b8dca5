"""Two and three real processes against one: the same codes, the same embeddings, clear words when one is gone."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import nearkin as nk
from tests.processes import Program, free_port
from tests.web.browser import wait_until

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}/src:{ROOT}", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


class Ended(NamedTuple):
    returncode: int | None
    stdout: str
    stderr: str


def launch(size: int, arguments: Callable[[int], list[object]]) -> list[Ended]:
    """Start `size` processes as torchrun would, each with its own arguments; what they ended with and said."""
    port, started = free_port(), []
    for rank in range(size):
        place = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        started.append(Program(*arguments(rank), env=ENVIRONMENT | {name: str(value) for name, value in place.items()}))
    texts = [process.communicate() for process in started]
    return [Ended(process.returncode, *said) for process, said in zip(started, texts, strict=True)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of uneven length, one without rows."""
    folder = tmp_path_factory.mktemp("distributed")
    (folder / "parts").mkdir()
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(9000, 16)) * np.linspace(0.5, 2, 16)).astype(np.float32)
    for name, rows in (("a", slice(0, 5000)), ("b", slice(0, 0)), ("c", slice(5000, 5001)), ("d", slice(5001, 9000))):
        np.save(folder / "parts" / f"{name}.npy", X[rows])
    np.save(folder / "X.npy", X)
    return folder


@pytest.fixture(scope="module")
def ended(folder: Path) -> dict[str, Any]:
    """How the ranks of each job ended, and the names of the files that an interrupted run left in work/."""
    program = Program("tests.distributed.jobs", folder, env=ENVIRONMENT)
    printed, errors = program.communicate()
    assert program.returncode == 0, errors[-2000:]
    return json.loads(printed.splitlines()[-1])


@pytest.mark.parametrize("size", [2, 3])
def test_several_processes_do_what_one_does(folder: Path, ended: dict[str, Any], size: int) -> None:
    for rank, (code, errors) in enumerate(ended[str(size)]):
        assert code == 0, f"rank {rank}: {errors[-2000:]}"
    with np.load(folder / "found-1.npz") as truth, np.load(folder / f"found-{size}.npz") as found:
        expected_names = {name for name in truth if size == 3 or name.startswith(("codes.", "bits."))}
        assert set(found) == expected_names
        for name, expected in ((name, truth[name]) for name in expected_names):
            if name.endswith("codes"):
                np.testing.assert_array_equal(found[name], expected, err_msg=name)
            # a line search follows the rounding of sums, by 7e-5 on one kind of CPU
            error = 5e-4 if ".l-bfgs." in name else 2e-5
            np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=error, err_msg=name)
    for name in ("", "-itq"):
        one, several = (folder / f"idx-{n}{name}" for n in (1, size))
        assert (one / "index.faiss").read_bytes() == (several / "index.faiss").read_bytes()
    assert not list(folder.glob(".idx*")), "the parts are gone when the index stands"


def test_several_processes_go_on_where_one_was_interrupted(folder: Path, ended: dict[str, Any]) -> None:
    assert {"trained", "rows-0000000000000"} <= set(ended["begun"])
    assert "rows-0000000008192" not in ended["begun"]
    assert (folder / "idx-resumed/index.faiss").read_bytes() == (folder / "idx-1/index.faiss").read_bytes()
    assert not (folder / "work").exists()


def test_a_killed_process_ends_the_others(ended: dict[str, Any]) -> None:
    (code, errors), (killed, _) = ended["die"]
    assert killed == -9
    assert code not in (0, -9)
    assert "rank 0 stopped: another rank ended or hangs" in errors


def test_processes_told_different_files_are_refused(folder: Path) -> None:
    """Both say it, nothing is written."""
    names = [folder / "parts/*.npy", folder / "X.npy"]
    first, second = launch(2, lambda rank: ["nearkin", "compress", names[rank], "--out", folder / "never"])
    assert (first.returncode, second.returncode) == (2, 2)
    assert "rank 1 has vectors" in first.stderr
    assert "4 files, 9000 x 16 float32, digest" in first.stderr
    assert first.stderr == second.stderr
    assert not (folder / "never").exists()


# What torchrun starts: it hands its variables over and waits. Python would take seconds to start, a fork does not.
WORKER = (
    'env > "$FOLDER/.$RANK" && mv "$FOLDER/.$RANK" "$FOLDER/env-$RANK"; until [ -e "$FOLDER/done" ]; do sleep .1; done'
)


def test_torchrun_starts_the_command_line(folder: Path, tmp_path: Path) -> None:
    options = ["--method", "none", "--bytes", "4", "--centroids", "16", "--json", "--out", folder / "cli"]
    workers = ["--standalone", "--nproc-per-node", 2, "--no-python", "sh", "-c", WORKER]
    torchrun = Program("torch.distributed.run", *workers, env=ENVIRONMENT | {"FOLDER": str(tmp_path)})
    variables = [tmp_path / "env-0", tmp_path / "env-1"]
    wait_until(lambda: all(file.exists() for file in variables) or torchrun.returncode is not None)
    ranks = []
    for file in variables:
        lines = [line.partition("=") for line in file.read_text().splitlines() if re.match(r"[A-Z_]+=", line)]
        given = {name: value for name, _, value in lines if name not in ENVIRONMENT}
        ranks.append(Program("nearkin", "compress", f"{folder}/parts/*.npy", *options, env=ENVIRONMENT | given))
    printed, errors = zip(*(rank.communicate() for rank in ranks), strict=True)
    assert [rank.returncode for rank in ranks] == [0, 0], errors
    (tmp_path / "done").touch()
    assert torchrun.communicate()[0] == ""
    assert torchrun.returncode == 0
    assert "".join(printed).count('"vectors": 9000') == 1, "the record is printed once"
    assert len(nk.Index.load(folder / "cli")) == 9000
