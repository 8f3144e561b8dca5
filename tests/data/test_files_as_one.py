"""Several files as one array: patterns, lists, files without rows, and files that do not fit together."""

from pathlib import Path

import numpy as np
import pytest

from nearkin.data import open_vectors, read_vectors
from nearkin.jobs.inputs import open_given
from tests.covering import each
from tests.data.test_vectors import write

LENGTHS = {"a": 70, "b": 0, "c": 1, "d": 40}


@pytest.fixture(params=[".npy", ".npz", ".fvecs", ".csv", ".parquet"])
def parts(request: pytest.FixtureRequest, tmp_path: Path, rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Files, and the rows in them."""
    X = rng.integers(0, 6, (sum(LENGTHS.values()), 3)).astype(np.float32)
    files, start = list[str](), 0
    for name, length in LENGTHS.items():
        if length or request.param in (".npy", ".npz"):  # the other formats cannot say how wide no row is
            files.append(write(tmp_path / (name + request.param), X[start : start + length]))
        start += length
    return files, X


def test_several_files_are_one_in_order(parts: tuple[list[str], np.ndarray]) -> None:
    files, X = parts
    file = open_vectors(files)
    assert file.shape == X.shape
    np.testing.assert_array_equal(file.read(), X)
    np.testing.assert_array_equal(np.concatenate(list(file.chunks(16))), X)
    np.testing.assert_array_equal(file.sample(30, 0), X[file.draw(30, 0)])
    np.testing.assert_array_equal(read_vectors(files[0].replace("a.", "*.")), X)
    for first, stop in ((0, 111), (60, 90), (70, 70), (70, 71), (110, 111)):
        part = file.part(first, stop)
        assert len(part) == stop - first
        np.testing.assert_array_equal(part.read(), X[first:stop])
        numbers = np.arange(0, stop - first, 3)
        np.testing.assert_array_equal(part.take(numbers), X[first:stop][numbers])
        np.testing.assert_array_equal(part.part(0, len(part)).read(), X[first:stop])


def test_what_two_processes_see_is_compared(tmp_path: Path) -> None:
    for folder, last in (("one", 3.0), ("same", 3.0), ("other", 4.0)):
        (tmp_path / folder).mkdir()
        for name in ("a", "b"):
            np.save(tmp_path / folder / f"{name}.npy", np.array([[1.0, 2.0], [1.0, last]], np.float32))
    seen = [open_vectors(f"{tmp_path}/{name}/*.npy").describe() for name in ("one", "same", "other")]
    one, same, other = (text.split(": ")[1] for text in seen)
    assert one == same != other
    assert one.startswith("2 files, 4 x 2 float32, digest ")


def test_a_bad_row_is_counted_from_the_first_file(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((5, 2), np.float32))
    np.save(tmp_path / "b.npy", np.array([[0, 0], [np.nan, 0]], np.float32))
    file = open_vectors(f"{tmp_path}/*.npy")
    for vectors in (file, file.part(4, 7)):
        with pytest.raises(ValueError, match="the first is row 6"):
            vectors.check_finite()


@each(("shape", "dtype"), [((2, 4), np.float32), ((2, 3), np.float64)])
def test_files_that_do_not_fit_are_named(tmp_path: Path, shape: tuple[int, int], dtype: type) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.float32))
    np.save(tmp_path / "b.npy", np.zeros(shape, dtype))
    text = rf"b\.npy has {shape[1]} columns of {np.dtype(dtype)}, .*a\.npy has 3 columns of float32"
    with pytest.raises(ValueError, match=text):
        open_vectors(f"{tmp_path}/*.npy")


def test_nothing_to_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((0, 3)))
    with pytest.raises(FileNotFoundError, match=r"no\*\.npy matches no file"):
        open_vectors(tmp_path / "no*.npy")
    with pytest.raises(FileNotFoundError, match=r"missing\.npy does not exist"):
        open_vectors([tmp_path / "a.npy", tmp_path / "missing.npy"])
    with pytest.raises(ValueError, match=r"has shape \(0, 3\); it needs at least one row"):
        open_vectors([tmp_path / "a.npy", tmp_path / "a.npy"])
    with pytest.raises(ValueError, match="the list of files is empty"):
        open_vectors([])
    with pytest.raises(TypeError, match="the file is a int"):
        open_vectors([3])


def test_a_description_notices_a_changed_row_anywhere_in_a_mapped_file(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
    found = set()
    for row in (None, 0, 9, 15):
        Y = X.copy()
        Y[slice(0) if row is None else row] += 1
        np.save(tmp_path / "X.npy", Y)
        found.add(open_vectors(tmp_path / "X.npy").describe())
    assert len(found) == 4


def test_a_folder_of_parts_is_described_as_a_whole(tmp_path: Path) -> None:
    """Only the first part and its rows were named."""
    (tmp_path / "_SUCCESS").touch()
    for number in range(12):
        (tmp_path / f"part-{number}.csv").write_text(f"id,f0,f1\nv{number},{number},1\n")
    given = open_given(tmp_path)
    assert given.file.read()[:, 0].tolist() == list(range(12))
    assert given.ids is not None
    assert given.ids.tolist() == [f"v{number}" for number in range(12)]
    assert given.about.startswith("12 files of 12 rows, the first is ")
    assert given.about.endswith("ids in column 'id'")
