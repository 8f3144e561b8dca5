"""Two and three real processes against one: the same codes, the same embeddings, clear words when one is gone."""

import os
import socket
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import nearkin as nk
from nearkin.data import open_vectors
from nearkin.pipeline.compress import compress_file
from nearkin.pipeline.run import Steps
from tests.distributed import jobs
from tests.processes import Program

ROOT = Path(__file__).parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}/src:{ROOT}", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


class Ended(NamedTuple):
    returncode: int | None
    stdout: str
    stderr: str


def launch(size: int, arguments: Callable[[int], list[object]]) -> list[Ended]:
    """Start `size` processes as torchrun would, each with its own arguments; what they ended with and said."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = []
    for rank in range(size):
        place = {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        started.append(Program(*arguments(rank), env=ENVIRONMENT | {name: str(value) for name, value in place.items()}))
    texts = [process.communicate() for process in started]
    return [Ended(process.returncode, *said) for process, said in zip(started, texts, strict=True)]


class Interrupted(Exception):
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of uneven length, one without rows, and what one process makes of them, once whole, once interrupted."""
    folder = tmp_path_factory.mktemp("distributed")
    (folder / "parts").mkdir()
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(9000, 16)) * np.linspace(0.5, 2, 16)).astype(np.float32)
    for name, rows in (("a", slice(0, 5000)), ("b", slice(0, 0)), ("c", slice(5000, 5001)), ("d", slice(5001, 9000))):
        np.save(folder / "parts" / f"{name}.npy", X[rows])
    np.save(folder / "X.npy", X)
    jobs.compress(folder, "idx-1")

    def stop(step: int, record: dict) -> None:
        if step > 5000 and "distortion" not in record:
            raise Interrupted

    file = open_vectors(f"{folder}/parts/*.npy")
    quantizer = nk.ProductQuantizer(4, 256, max_iter=2, random_state=0)

    watch = Steps(lambda name: nullcontext(stop if name == "encode" else lambda step, record: None))
    with pytest.raises(Interrupted):
        compress_file(file, quantizer, folder / "no", random_state=0, checkpoint=folder / "work", steps=watch)
    return folder


@pytest.fixture(scope="module")
def truth() -> dict[str, np.ndarray]:
    return jobs.all_jobs()


@pytest.mark.parametrize("size", [2, 3])
def test_several_processes_do_what_one_does(folder: Path, truth: dict[str, np.ndarray], size: int) -> None:
    begun = sorted(path.name for path in (folder / "work").glob("*")) if size == 3 else []
    for rank, ended in enumerate(launch(size, lambda rank: ["tests.distributed.jobs", "run", folder])):
        assert ended.returncode == 0, f"rank {rank}: {ended.stderr[-2000:]}"
    with np.load(folder / f"found-{size}.npz") as found:
        assert set(found) == set(truth)
        for name, expected in truth.items():
            if name.endswith("codes"):
                np.testing.assert_array_equal(found[name], expected, err_msg=name)
            np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=2e-5, err_msg=name)
    for name in ("", "-itq"):
        one, several = (folder / f"idx-{n}{name}" for n in (1, size))
        assert (one / "index.faiss").read_bytes() == (several / "index.faiss").read_bytes()
    assert not list(folder.glob(".idx*")), "the parts are gone when the index stands"
    if size == 3:  # what one process had begun
        assert {"quantizer", "rows-0000000000000.faiss"} <= set(begun)
        assert "rows-0000000008192.faiss" not in begun
        assert (folder / "idx-resumed/index.faiss").read_bytes() == (folder / "idx-1/index.faiss").read_bytes()
        assert not (folder / "work").exists()


def test_a_killed_process_is_named_by_the_others(folder: Path) -> None:
    survivor, killed = launch(2, lambda rank: ["tests.distributed.jobs", "die", folder])
    assert killed.returncode == -9
    assert survivor.returncode not in (0, -9)
    assert "rank 0 stopped at a sum: rank 1 is gone" in survivor.stderr


def test_processes_told_different_files_are_refused(folder: Path) -> None:
    """Both see it, the first one says it, nothing is written."""
    names = [folder / "parts/*.npy", folder / "X.npy"]
    first, second = launch(2, lambda rank: ["nearkin", "compress", names[rank], "--out", folder / "never"])
    assert (first.returncode, second.returncode) == (2, 2)
    assert "rank 1 has vectors" in first.stderr
    assert "4 files, 9000 x 16 float32, digest" in first.stderr
    assert first.stderr.count("\n") == 1
    assert not second.stderr
    assert not (folder / "never").exists()


def test_torchrun_starts_the_command_line(folder: Path) -> None:
    options = ["--method", "none", "--bytes", "4", "--centroids", "16", "--json", "--out", folder / "cli"]
    command = ["--standalone", "--nproc-per-node", 2, "-m", "nearkin", "compress", f"{folder}/parts/*.npy", *options]
    torchrun = Program("torch.distributed.run", *command, env=ENVIRONMENT)
    printed, errors = torchrun.communicate()
    assert torchrun.returncode == 0, errors[-2000:]
    assert printed.count('"vectors": 9000') == 1, "the record is printed once"
    assert len(nk.Index.load(folder / "cli")) == 9000
