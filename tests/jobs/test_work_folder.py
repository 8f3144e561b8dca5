"""A compression that is interrupted goes on where it stopped."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin import _storage
from nearkin._storage import changing
from nearkin.data import VectorFile, open_vectors
from nearkin.jobs.compress import Choice, compress_file
from nearkin.jobs.run import watched
from nearkin.quantization.best import Size
from tests.covering import each


class Interrupted(Exception):
    pass


@pytest.fixture
def file(tmp_path: Path, rng: np.random.Generator) -> VectorFile:
    np.save(tmp_path / "X.npy", rng.normal(size=(9000, 8)).astype(np.float32))
    return open_vectors(tmp_path / "X.npy")


PRODUCT = Choice("none", Size(2, 16, random_state=0))


def compress(
    file: VectorFile, folder: Path, after: int | None = None, choice: Choice = PRODUCT, overwrite: bool = False
) -> None:
    """With `after`, an interruption when that many rows are encoded."""

    def stop(step: int, record: object) -> None:
        if after is not None and step > after:
            raise Interrupted

    with watched(lambda name: nullcontext(stop if name == "encode" else lambda step, record: None)):
        compress_file(file, choice, folder / "idx", checkpoint=folder / "work", overwrite=overwrite)


def check_whole(file: VectorFile, folder: Path, choice: Choice = PRODUCT) -> None:
    """The index is the one that a run without an interruption makes."""
    compress_file(file, choice, folder / "whole")
    assert (folder / "idx/index.faiss").read_bytes() == (folder / "whole/index.faiss").read_bytes()


def test_a_second_run_learns_and_encodes_only_what_is_missing(
    tmp_path: Path, file: VectorFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Interrupted):
        compress(file, tmp_path, after=5000)
    first = tmp_path / "work/rows-0000000000000/index.faiss"
    assert first.is_file()
    assert not (tmp_path / "work/rows-0000000008192").exists()
    assert not (tmp_path / "idx").exists()
    first_made = first.stat().st_mtime_ns

    def no_fit(*args: object, **options: object) -> None:
        raise AssertionError("the quantizer has been learned already")

    monkeypatch.setattr(nk.ProductQuantizer, "fit", no_fit)
    monkeypatch.setattr(_storage, "discard", lambda path: None)
    compress(file, tmp_path)
    monkeypatch.undo()
    assert first.stat().st_mtime_ns == first_made
    compress(file, tmp_path, overwrite=True)
    assert not (tmp_path / "work").exists()
    check_whole(file, tmp_path)


def test_the_folder_of_another_run_is_refused(tmp_path: Path, file: VectorFile) -> None:
    with pytest.raises(Interrupted):
        compress(file, tmp_path, after=100)
    other = Choice("none", Size(4, 16, random_state=0))
    with pytest.raises(ValueError, match=r"is of another run \(n_bytes was 2, is 4\).*overwrite=True"):
        compress(file, tmp_path, choice=other)
    compress(file, tmp_path, choice=other, overwrite=True)
    check_whole(file, tmp_path, other)


def test_two_runs_with_one_checkpoint_are_refused(tmp_path: Path, file: VectorFile) -> None:
    with pytest.raises(Interrupted):
        compress(file, tmp_path, after=5000)
    with changing(tmp_path / "work"), pytest.raises(ValueError, match="is being written by another process"):
        compress(file, tmp_path, overwrite=True)


@pytest.mark.parametrize("checkpoint", ["idx", "idx/work", "."])
def test_checkpoint_and_out_must_lie_apart(tmp_path: Path, file: VectorFile, checkpoint: str) -> None:
    """Before, the result was deleted, with exit code 0."""
    with pytest.raises(ValueError, match=r"the same place"):
        compress_file(file, PRODUCT, tmp_path / "idx", checkpoint=tmp_path / checkpoint)
    assert [entry.name for entry in tmp_path.iterdir()] == ["X.npy"]


@pytest.mark.parametrize("name", ["thesis.tex", "trained/notes.txt"])
def test_the_users_files_in_the_checkpoint_folder_stay(tmp_path: Path, file: VectorFile, name: str) -> None:
    (tmp_path / "work").mkdir()  # empty: fine
    with pytest.raises(Interrupted):
        compress(file, tmp_path, after=5000)
    (tmp_path / "work" / name).write_text("mine")
    compress(file, tmp_path)
    assert (tmp_path / "work" / name).read_text() == "mine"


def test_the_vectors_must_not_lie_in_the_folder_that_is_replaced(tmp_path: Path, file: VectorFile) -> None:
    compress_file(file, PRODUCT, tmp_path / "idx", keep_vectors=True)
    kept = open_vectors(tmp_path / "idx" / "vectors.npy")
    with pytest.raises(ValueError, match=r"vectors.npy is an input and would be replaced"):
        compress_file(kept, PRODUCT, tmp_path / "idx", overwrite=True)
    assert (tmp_path / "idx" / "vectors.npy").is_file()


@each("ending", [".csv", ".npz", ".npy"])
def test_a_checkpoint_of_other_data_under_the_same_name_is_refused(tmp_path: Path, ending: str) -> None:
    """Before, codes of two files were mixed: those formats had no digest, .npy one of 16 rows."""
    X = np.random.default_rng(0).normal(size=(6000, 4)).round(3).astype(np.float32)
    path = tmp_path / f"X{ending}"
    _write(path, X)
    with pytest.raises(Interrupted):
        compress(nk.data.open_vectors(path), tmp_path, after=5000)
    X[3000] += 1  # beyond the rows that the vectors are described by
    _write(path, X)
    with pytest.raises(ValueError, match=r"is of another run \(contents was"):
        compress(nk.data.open_vectors(path), tmp_path)


def _write(path: Path, X: np.ndarray) -> None:
    if path.suffix == ".csv":
        np.savetxt(path, X, delimiter=",", fmt="%.3f", header="f0,f1,f2,f3", comments="")
    else:
        np.savez(path, X=X) if path.suffix == ".npz" else np.save(path, X)


def test_a_damaged_block_of_a_checkpoint_is_made_again(tmp_path: Path, file: VectorFile) -> None:
    """Before, a bit that had turned over in a block went into the index."""
    with pytest.raises(Interrupted):
        compress(file, tmp_path, after=5000)
    first = tmp_path / "work/rows-0000000000000/index.faiss"
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    first.write_bytes(data)
    compress(file, tmp_path)
    check_whole(file, tmp_path)


def test_a_checkpoint_that_is_a_file_is_named_and_stays(tmp_path: Path, file: VectorFile) -> None:
    """Before: "[Errno 20] Not a directory"."""
    (tmp_path / "work").write_text("notes")
    with pytest.raises(ValueError, match=r"work is a file; give the name of a folder"):
        compress(file, tmp_path)
    assert (tmp_path / "work").read_text() == "notes"
