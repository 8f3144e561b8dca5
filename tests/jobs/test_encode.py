"""Shards of vectors to shards of codes: equal to one call of encode, restartable, and never half a file."""

import errno
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq_file
import pytest

import nearkin as nk
from nearkin._storage import changing
from nearkin.export import BatchEncoder
from nearkin.index import Index
from nearkin.jobs import encode
from nearkin.jobs.encode import encode_file, encode_shards
from tests.cli.conftest import refused
from tests.processes import FORKSERVER
from tests.web.browser import wait_until


@pytest.fixture(autouse=True)
def one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers come from the server of all tests; a command in a process of its own starts another."""
    monkeypatch.setattr(encode, "_context", lambda: FORKSERVER)


@pytest.fixture(scope="session")
def model(bits: Index, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "idx"
    bits.save(folder)
    return folder


@pytest.fixture
def parts(X: np.ndarray, tmp_path: Path) -> Path:
    """Three .npy shards of unequal lengths."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, rows in enumerate(np.split(X, [1, 1200])):
        np.save(folder / f"part-{i}.npy", rows)
    return folder


def joined(out: Path) -> np.ndarray:
    return np.concatenate([np.load(file) for file in sorted(out.glob("part-*.npy"))])


@pytest.mark.parametrize("workers", [0, 2])
def test_codes_are_those_of_the_quantizer(model, parts, bits, X, tmp_path, workers) -> None:
    record = encode_shards([f"{parts}/*.npy"], model, tmp_path / "out", workers=workers)
    assert (record["shards"], record["skipped"], record["rows"], record["bytes_per_vector"]) == (3, 0, 3000, 2)
    np.testing.assert_array_equal(joined(tmp_path / "out"), bits.quantizer.encode(X))


@pytest.mark.parametrize("kind", ["large_list", "fixed", "columns"])
def test_parquet_keeps_its_other_columns(kind, model, bits, X, tmp_path) -> None:
    rows = X[:500]
    if kind == "columns":
        table = pa.table({f"x{j}": rows[:, j] for j in range(16)})
    else:
        list_type = pa.list_(pa.float32(), 16) if kind == "fixed" else pa.large_list(pa.float32())
        table = pa.table({"name": [f"row {i}" for i in range(500)], "v": pa.array(rows.tolist(), list_type)})
    pq_file.write_table(table, tmp_path / "part.parquet", row_group_size=120)
    encode_shards([str(tmp_path / "part.parquet")], model, tmp_path / "out", workers=0)
    made = pq_file.read_table(tmp_path / "out" / "part.parquet")
    codes = np.frombuffer(b"".join(made["codes"].to_pylist()), np.uint8).reshape(500, -1)
    np.testing.assert_array_equal(codes, bits.quantizer.encode(rows))
    assert made.column_names == (["codes"] if kind == "columns" else ["name", "codes"])


def test_wide_codes_keep_their_type(X, tmp_path) -> None:
    quantizer = nk.ProductQuantizer(2, 300, random_state=0, max_iter=1, init="pca").fit(X)
    quantizer.save(tmp_path / "pq")
    np.save(tmp_path / "part.npy", X)
    encode_shards([str(tmp_path / "part.npy")], tmp_path / "pq", tmp_path / "out", workers=0)
    codes = np.load(tmp_path / "out" / "part.npy")
    assert codes.dtype == np.uint16
    np.testing.assert_array_equal(codes, quantizer.encode(X))


def interrupted(parts: Path, model: Path, out: Path) -> list[str]:
    """Encode shards of which the last cannot be encoded; returns the shards, all good."""
    last = sorted(parts.glob("*.npy"))[-1]
    rows = np.load(last)
    np.save(last, np.full_like(rows, np.nan))
    with pytest.raises(ValueError, match="contains NaN"):
        encode_shards([f"{parts}/*.npy"], model, out, workers=0)
    np.save(last, rows)
    return [f"{parts}/*.npy"]


def test_a_restart_skips_what_is_finished_and_whole(model, parts, bits, X, tmp_path) -> None:
    out, work = tmp_path / "out", tmp_path / ".out.parts"
    shards = interrupted(parts, model, out)
    assert not out.exists()
    (work / "thesis.tex").write_text("mine")
    whole = (work / "part-1.npy/part-1.npy").read_bytes()
    (work / "part-1.npy/part-1.npy").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert encode_shards(shards, model, out, workers=0)["skipped"] == 1
    np.testing.assert_array_equal(joined(out), bits.quantizer.encode(X))
    assert (work / "thesis.tex").read_text() == "mine"
    (work / "thesis.tex").unlink()
    with pytest.raises(ValueError, match=r"out exists; .* overwrite=True"):
        encode_shards(shards, model, out, workers=0)
    os.utime(parts / "part-2.npy", ns=(1, 1))  # written again, later
    assert encode_shards(shards, model, out, workers=0, overwrite=True)["skipped"] == 2
    assert {entry.name for entry in tmp_path.iterdir()} == {"out", "parts"}
    assert {entry.name for entry in out.iterdir()} == {"config.json", "manifest.json", *os.listdir(parts)}


def test_parts_of_another_model_need_overwrite(model, parts, X, tmp_path) -> None:
    shards = interrupted(parts, model, tmp_path / "out")
    other = nk.RandomHyperplanes(12, random_state=1).fit(X)
    other.save(tmp_path / "other")
    with pytest.raises(ValueError, match=r"is of another run \(model was .* overwrite=True"):
        encode_shards(shards, tmp_path / "other", tmp_path / "out", workers=0)
    assert encode_shards(shards, tmp_path / "other", tmp_path / "out", workers=0, overwrite=True)["skipped"] == 0
    np.testing.assert_array_equal(joined(tmp_path / "out"), other.encode(X))


def test_bad_shards_are_found_before_any_work(model, parts, X, tmp_path) -> None:
    out = tmp_path / "out"

    def fails(kind: type[Exception], message: str, *shards: object) -> None:
        with pytest.raises(kind, match=message):
            encode_shards([str(shard) for shard in shards], model, out, workers=0)
        assert not out.exists()

    fails(FileNotFoundError, r"none-\*.npy matches no file", parts / "none-*.npy")
    fails(FileNotFoundError, "part-9.npy does not exist", parts / "part-0.npy", parts / "part-9.npy")
    np.save(parts / "wide.npy", np.ones((3, 17), np.float32))
    fails(ValueError, r"wide.npy has 17 columns; .* takes 16", parts / "*.npy")
    np.save(parts / "wide.npy", np.ones((3, 16), np.uint8))
    fails(ValueError, r"different types \(.*part-0.npy is float32 in .npy, .*wide.npy is uint8", parts / "*.npy")
    (parts / "wide.npy").unlink()
    np.save(tmp_path / "part-0.npy", X[:3])
    fails(ValueError, "have the same name", parts / "*.npy", tmp_path / "part-0.npy")
    (parts / "part-3.npy").write_bytes((parts / "part-2.npy").read_bytes()[:5000])
    fails(ValueError, "part-3.npy is truncated", parts / "*.npy")
    (parts / "x.csv").write_text("1,2\n")
    fails(ValueError, "has the ending '.csv'", parts / "x.csv")


def test_what_is_not_codes_stays(model, parts, tmp_path) -> None:
    for overwrite, message in ((False, "exists"), (True, r"holds part-0.npy and 2 others")):
        (tmp_path / "mine").mkdir(exist_ok=True)
        for part in parts.iterdir():
            shutil.copy(part, tmp_path / "mine")
        with pytest.raises(ValueError, match=message):
            encode_shards([f"{parts}/*.npy"], model, tmp_path / "mine", workers=0, overwrite=overwrite)


def test_shards_must_not_lie_in_out(model, parts, tmp_path) -> None:
    """Before, the codes took the place of the vectors."""
    encode_shards([f"{parts}/*.npy"], model, tmp_path / "out", workers=0)
    np.save(tmp_path / "out" / "part-3.npy", np.load(parts / "part-0.npy"))
    with pytest.raises(ValueError, match=r"part-3.npy is an input"):
        encode_shards([str(tmp_path / "out" / "part-3.npy")], model, tmp_path / "out", workers=0, overwrite=True)


def _session_of_two_workers(model: Path, folder: Path) -> None:
    os.setsid()
    encode._context = lambda: multiprocessing.get_context("fork")  # no thread runs here
    encode_shards([f"{folder}/part-*.npy"], model, folder / "out", workers=2)


def test_workers_end_with_a_killed_parent(model, tmp_path) -> None:
    """Before, they waited for work for ever, with 950 MB."""
    for number in range(2):
        np.lib.format.open_memmap(tmp_path / f"part-{number}.npy", "w+", np.float32, (300_000, 16)).flush()
    job = FORKSERVER.Process(target=_session_of_two_workers, args=(model, tmp_path))
    job.start()
    while not list(tmp_path.glob(".out.parts/.part-*")):
        assert job.is_alive()
        time.sleep(0.02)
    assert len(members(job.pid)) == 3
    job.kill()
    job.join()
    wait_until(lambda: not members(job.pid))


def members(session: int) -> list[str]:
    """Processes of a session that still run."""
    listed = subprocess.run(["ps", "-s", str(session), "-o", "pid=,stat="], capture_output=True, text=True, check=False)
    return [line for line in listed.stdout.splitlines() if "Z" not in line.split()[1]]


def test_nan_in_a_later_shard_keeps_the_earlier(model, parts, tmp_path) -> None:
    rows = np.load(parts / "part-2.npy")
    rows[-1, 3] = np.nan
    np.save(parts / "part-2.npy", rows)
    for workers in (0, 2):
        with pytest.raises(ValueError, match="contains NaN"):
            encode_shards([f"{parts}/*.npy"], model, tmp_path / "out", workers=workers)
        assert not (tmp_path / "out").exists()
    rows[-1, 3] = 0
    np.save(parts / "part-2.npy", rows)
    assert encode_shards([f"{parts}/*.npy"], model, tmp_path / "out", workers=0)["skipped"] == 2


def test_a_full_disk_leaves_no_half_file(model, parts, bits, X, tmp_path) -> None:
    """As far as a test may go: for a moment no file of this process may exceed 2000 bytes."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, old[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*part-1.npy") as failed:
            encode_shards([f"{parts}/*.npy"], model, tmp_path / "out", workers=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert failed.value.errno == errno.EFBIG  # whoever calls can tell a full disk from a file that is not there
    names = {file.name for file in (tmp_path / ".out.parts").iterdir()}
    assert names == {"config.json", "manifest.json", "added.json", "part-0.npy"}
    assert encode_shards([f"{parts}/*.npy"], model, tmp_path / "out", workers=0)["skipped"] == 1
    np.testing.assert_array_equal(joined(tmp_path / "out"), bits.quantizer.encode(X))


def test_kill_9_and_then_a_restart(model, X, bits, tmp_path) -> None:
    parts, out = tmp_path / "parts", tmp_path / "out"
    parts.mkdir()
    rows = np.tile(X, (3, 1))
    for i in range(60):
        np.save(parts / f"part-{i:02d}.npy", rows)
    job = [f"{parts}/*.npy"], model, out
    child = encode._context().Process(target=encode_shards, args=job, kwargs={"workers": 0})
    child.start()
    while not list(tmp_path.glob(".out.parts/part-0[2-9].npy")):
        assert child.is_alive()
        time.sleep(0.005)
    child.kill()
    child.join()
    record = encode_shards(*job, workers=0)
    assert 2 <= record["skipped"] < 60
    assert {file.name for file in out.iterdir()} == {*os.listdir(parts), "config.json", "manifest.json"}
    assert {entry.name for entry in tmp_path.iterdir()} == {"out", "parts"}
    np.testing.assert_array_equal(np.load(out / "part-59.npy"), bits.quantizer.encode(rows))


class KilledEncoder(BatchEncoder):
    """One whose process is killed in its first batch, as by the kernel when memory is out."""

    def encode(self, X: np.ndarray) -> np.ndarray:
        os.kill(os.getpid(), signal.SIGKILL)
        return X


def test_a_killed_worker_is_named(model, parts, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ChildProcessError, match=r"a worker was killed .* run the same command again"):
        list(encode._encoded(sorted(parts.glob("*.npy")), KilledEncoder(model), tmp_path / "out", 2))


def test_two_jobs_into_one_folder(model, parts, tmp_path) -> None:
    interrupted(parts, model, tmp_path / "out")
    with changing(tmp_path / ".out.parts"):
        refused(
            "is being written by another process",
            "encode",
            f"{parts}/*.npy",
            "--model",
            model,
            "--out",
            tmp_path / "out",
            "--workers",
            0,
        )


def test_memory_does_not_grow_with_the_rows(model, tmp_path) -> None:
    import tracemalloc

    np.lib.format.open_memmap(tmp_path / "part.npy", "w+", np.float32, (600_000, 16)).flush()  # 38 MB
    (tmp_path / "out").mkdir()
    encoder = BatchEncoder(model)
    encoder.encode(np.zeros((1, 16)))
    tracemalloc.start()
    encode_file(tmp_path / "part.npy", encoder, tmp_path / "out")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6, peak  # a few copies of a chunk of 8 MB, and not the 38 MB of the file
