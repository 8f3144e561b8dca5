"""Vectors from files: every format gives the same rows, in chunks as in one piece, and bad files say what is wrong."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.torch
import torch
from pyarrow import feather

import nearkin as nk
from nearkin.data import open_vectors, read_vectors
from tests.covering import each

N, D = 37, 5
BINS = {".fbin": "<f4", ".ibin": "<i4", ".u8bin": "u1", ".i8bin": "i1"}  # of big-ann-benchmarks


def write_vecs(path: Path, X: np.ndarray) -> Path:
    widths = np.full((len(X), 1), X.shape[1], "<i4").view(np.uint8)
    path.write_bytes(np.hstack([widths, np.ascontiguousarray(X).view(np.uint8).reshape(len(X), -1)]).tobytes())
    return path


def write(path: Path, X: np.ndarray) -> str:
    """Write X (whole numbers up to 255) in the format of the path's ending; returns what to pass to the reader."""
    kind = path.suffix
    if kind == ".npy":
        np.save(path, np.asfortranarray(X.astype(np.float64)))
    elif kind == ".npz":
        np.savez_compressed(path, first=X[:1], base=np.asfortranarray(X.astype(np.uint8)))
        return f"{path}:base"
    elif kind in (".fvecs", ".bvecs", ".ivecs"):
        write_vecs(path, X.astype({".fvecs": "<f4", ".bvecs": "u1", ".ivecs": "<i4"}[kind]))
    elif kind in BINS:
        path.write_bytes(np.array(X.shape, "<u4").tobytes() + X.astype(BINS[kind]).tobytes())
    elif kind == ".safetensors":
        safetensors.torch.save_file({"X": torch.from_numpy(X).half()}, path)
    elif kind == ".h5":
        with h5py.File(path, "w") as file:
            file["words/vectors"] = X
    elif kind == ".parquet":
        lists = pa.array(list(X.astype(np.float32)), pa.list_(pa.float32()))
        pq.write_table(pa.table({"name": [str(i) for i in range(len(X))], "vector": lists}), path, row_group_size=10)
    elif kind == ".feather":
        feather.write_feather(pa.table({f"x{place}": column for place, column in enumerate(X.T)}), path)
    else:
        mark = "," if kind == ".csv" else "\t"
        np.savetxt(path, X, delimiter=mark, header=mark.join(f"f{n}" for n in range(X.shape[1])), comments="")
    return str(path)


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    X = rng.integers(0, 256, (N, D)).astype(np.float32)
    X[:, 0] = np.arange(N)  # a row tells its number
    return X


VECTORS = ["npy", "npz", "fvecs", "bvecs", "ivecs", *(kind[1:] for kind in BINS if kind != ".i8bin")]
FORMATS = [*VECTORS, "safetensors", "h5", "parquet", "feather", "csv", "tsv"]


@each("kind", FORMATS)
@each("rows", [1, 10, N, 1000])
def test_chunks_are_the_file_in_order(tmp_path: Path, X: np.ndarray, kind: str, rows: int) -> None:
    file = open_vectors(write(tmp_path / f"X.{kind}", X))
    assert (file.shape, len(file)) == ((N, D), N)
    chunks = list(file.chunks(rows))
    assert {len(chunk) for chunk in chunks[:-1]} <= {rows}, "digests of equal vectors need equal chunks"
    np.testing.assert_array_equal(np.concatenate(chunks), X)
    assert chunks[0].dtype == np.float32
    np.testing.assert_array_equal(file.read(), X)


@each("kind", FORMATS)
def test_a_sample_is_different_rows_in_order_and_repeats_by_seed(tmp_path: Path, X: np.ndarray, kind: str) -> None:
    file = open_vectors(write(tmp_path / f"X.{kind}", X))
    sample = file.sample(12, 3)
    np.testing.assert_array_equal(sample, X[sample[:, 0].astype(int)])
    assert (np.diff(sample[:, 0]) > 0).all()
    np.testing.assert_array_equal(sample, file.sample(12, 3))
    assert (sample != file.sample(12, 4)).any()
    np.testing.assert_array_equal(file.sample(1000, 0), X)


def test_signed_bytes_and_neighbours_of_big_ann_benchmarks(tmp_path: Path, X: np.ndarray) -> None:
    np.testing.assert_array_equal(read_vectors(write(tmp_path / "X.i8bin", X - 128)), X - 128)
    np.testing.assert_array_equal(nk.data.read_neighbors(write(tmp_path / "X.ibin", X)), X)


def test_a_colon_in_a_file_name_is_a_colon(tmp_path: Path, X: np.ndarray) -> None:
    np.save(tmp_path / "a:b.npy", X)
    assert open_vectors(tmp_path / "a:b.npy").shape == (N, D)
    with pytest.raises(ValueError, match=r"columns is .'f0'.*is an array"):
        open_vectors(tmp_path / "a:b.npy", columns="f0")


TEXTS: dict[str, tuple[str, str, dict[str, Any]]] = {  # how -> name, text of two vectors (1, 2) and (3, 4), options
    "numbered": ("a.csv", "id,f0,f1,label\nu,1,2,x\nnan,3,4,y\n", {}),
    "typed": ("a.csv", "x,y,z\n1,2,0\n3,4,0\n", {"columns": ["x", "y"]}),
    "without names": ("a.csv", "1,2\n\n3,4\n\n", {"header": False}),
    "words first": ("a.txt", 'the 1 2\n" 3 4\n', {"header": False, "delimiter": " "}),
    "word2vec": ("a.vec", "2 2\nthe 1 2\nof 3 4\n", {}),
    "fastText": ("a.vec", "2 2 \nthe 1 2 \nof 3 4 \n", {}),
    "semicolons": ("a.csv", "f0;f1\n1;2\n3;4\n", {}),
}


def test_text_goes_by_names(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for how, (name, text, options) in TEXTS.items():
        with subtests.test(how):
            (tmp_path / name).write_text(text)
            np.testing.assert_array_equal(read_vectors(tmp_path / name, **options), [[1, 2], [3, 4]])
    (tmp_path / "a.csv").write_text(TEXTS["numbered"][1])
    file = open_vectors(tmp_path / "a.csv")
    assert np.asarray(file.ids()).tolist() == ["u", "nan"]  # a word
    assert "2 rows of 2 numbers in f0 to f1; ids in column 'id'; left aside: label" in file.about
    np.testing.assert_array_equal(read_vectors(f"{tmp_path}/a.csv:f1"), [[2], [4]])


def test_vectors_that_the_names_do_not_tell_are_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    refused = {
        "x,y\n1,2\n": r"columns=\['x', 'y'\]",
        "f0,f1,g0,g1\n1,2,3,4\n": "without a gap",
        'id,embedding\na,"[1, 2]"\n': r"of lists in text, type frame\['embedding'\] = .*findall",
        "1.5,2\n1,2\n": "header=False.*add_prefix",
        "f0;f1\n1,5;2,5\n": r"'1,5' in line 2.*replace\(',', '\.'\)",
        "id;a;b\nu;1,5;2\n": r"columns=\['b'\]",  # not a list of two
        "id,f0,f1,f2\nu,1,2,\nv,3,4,5\n": "column 'f2' .* missing numbers",
        "2 2\nthe 1 2\nof 3 4\n": "has the ending .vec",
        "the 1 2\nof 3 4\n": "delimiter=' '; if the first line is data, header=False$",
    }
    for text, why in refused.items():
        (tmp_path / "a.csv").write_text(text)
        with subtests.test(text), pytest.raises(ValueError, match=why):
            read_vectors(tmp_path / "a.csv")


def test_bad_rows_are_counted(tmp_path: Path, X: np.ndarray) -> None:
    X[[4, 9], 2] = np.nan, np.inf
    np.save(tmp_path / "X.npy", X)
    seen = []
    with pytest.raises(ValueError, match=r"X.npy contains NaN or infinity .* in 2 of 37 rows, the first is row 4"):
        open_vectors(tmp_path / "X.npy").check_finite(lambda step, record: seen.append((step, record["total"])))
    assert seen == [(37, 37)]
    with pytest.raises(ValueError, match="in 2 of 37 rows"):
        read_vectors(tmp_path / "X.npy")


ONES = np.ones((4, 3), np.float32)


def cut(path: Path, left_out: int) -> None:
    path.write_bytes(path.read_bytes()[:-left_out])


def parquet(**columns: list) -> Callable[[Path], object]:
    return lambda p: pq.write_table(pa.table(columns), p)


def values(*numbers: float, dtype: str = "<u4") -> Callable[[Path], object]:
    return lambda p: p.write_bytes(np.array(numbers, dtype).tobytes())


BAD: dict[str, tuple[str, Callable[[Path], object]]] = {  # file -> what is said, and what writes it
    "missing.npy": ("does not exist", lambda p: None),
    "folder.npy": ("is a folder", Path.mkdir),
    "empty.npy": ("is an empty file", Path.touch),
    "text.npy": ("magic string", lambda p: p.write_text("no array")),
    "cut.npy": ("announces 176 bytes.* stores 171 ", lambda p: (np.save(p, ONES), cut(p, 5))),
    "object.npy": (r"X\.tolist", lambda p: np.save(p, np.array([[1, None]], dtype=object), allow_pickle=True)),
    "complex.npy": ("complex", lambda p: np.save(p, ONES * 1j)),
    "cut.safetensors": ("cannot be read", lambda p: (write(p, ONES), cut(p, 4))),
    "inf.npy": ("in 1 of 1 row", lambda p: np.save(p, [[1.0, 1e300]])),  # beyond float32
    "text-array.npy": ("dtype <U1; vectors must hold real numbers", lambda p: np.save(p, np.array([["a"]]))),
    "flat.npy": (r"has shape \(3,\); it must be 2-D", lambda p: np.save(p, ONES[0])),
    "none.npy": (r"has shape \(0, 3\); it needs at least one row", lambda p: np.save(p, ONES[:0])),
    "two.npz": ("2 arrays; name one of .*two.npz:a, .*two.npz:b", lambda p: np.savez(p, a=ONES, b=ONES)),
    "two.npz:c": ("is no array; the file holds 2 arrays", lambda p: np.savez(p.with_name("two.npz"), a=ONES, b=ONES)),
    "bad.npz": ("not a zip file", lambda p: p.write_bytes(b"PK no archive")),
    "cut.fvecs": ("width 3, is truncated.* 64 bytes.* stores 62", lambda p: (write_vecs(p, ONES), cut(p, 2))),
    "wide.fvecs": ("row of the width 3, row 0 has 2", values(2, 0, 0, 3, 0, 0)),
    "float.fvecs": ("is no .fvecs file", values(0.5, 0.5, dtype="<f4")),
    "cut.fbin": ("announces 32 bytes.* stores 12 ", values(2, 3, 0)),
    "over.u8bin": ("announces 10 bytes.* stores 12 ", values(1, 2, 0)),
    "short.i8bin": ("stores 3 ", lambda p: p.write_bytes(b"abc")),
    "truth.ibin": ("2 lists of 1 neighbours, then their distances; write the lists", values(2, 1, 0, 1, 0, 0)),
    "huge.fbin": ("is truncated", values(1, 2**31, 0)),
    "word.csv": ("column 'f1' .*'x' in row 1", lambda p: p.write_text("f0,f1\n1,2\n\n3,x\n")),
    "hole.csv": ("missing numbers in 1 cell: '' in line 3", lambda p: p.write_text("f0,f1\n1,2\n3,\n")),
    "short.csv": ("line 3: Expected 2 columns, got 1", lambda p: p.write_text("f0,f1\n3,4\n5\n")),
    "quoted.csv": ("ends within quotes", lambda p: p.write_text('1,"2\n",3\n3,4,5\n')),
    "header.csv": ("a header and no rows", lambda p: p.write_text("a,b\n")),
    "count.vec": ("announces 3 rows and has 2", lambda p: p.write_text("3 2\nthe 1 2\nof 3 4\n")),
    "bad.parquet": ("Parquet magic bytes not found", lambda p: p.write_bytes(b"no parquet")),
    "lists.parquet": (r"columns=\['a', 'b'\]", parquet(a=[[1.0]], b=[[1.0]])),
    "uneven.parquet": ("several lengths.*row 1", parquet(a=[[1.0], [1.0, 2.0]])),
    "null.parquet": ("lacks lists in 1 cell: 'None' in row 1", parquet(a=[[1.0], None])),
    "bytes.parquet": (r"of bytes, type frame\['a'\] = .*frombuffer", parquet(a=[b"\xff\xfe\xfd\xfc"])),
    "gap.parquet": ("missing numbers in its lists in 1 cell.* in row 1", parquet(a=[[1.0, 2.0], [1.0, None]])),
    "first.csv": ("repeats .*'M' in line 3.* header=False", lambda p: p.write_text("0,M,1\n1,F,0\n2,M,1\n")),
}


@each("name", BAD)
def test_a_bad_file_says_what_is_wrong(tmp_path: Path, name: str) -> None:
    said, make = BAD[name]
    make(tmp_path / name)
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        read_vectors(tmp_path / name)


def test_a_damaged_archive_is_noticed(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "X.npz"
    np.savez(path, X=rng.normal(size=(200, 10)))
    data = bytearray(path.read_bytes())
    data[5000] ^= 255
    path.write_bytes(data)
    with pytest.raises(ValueError, match="Bad CRC-32"):
        read_vectors(path)


def test_an_array_of_any_shape_is_opened(tmp_path: Path) -> None:
    X = np.arange(24).reshape(2, 3, 4)
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "b.npz", one=X, other=X[0])
    assert np.array_equal(nk.data.open_array(tmp_path / "a.npy"), X)
    assert np.array_equal(nk.data.open_array(f"{tmp_path}/b.npz:other"), X[0])
    (tmp_path / "c.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-8])
    for damaged in ("b.npz", "c.npy"):  # an archive of two arrays without a name, and a file cut off
        with pytest.raises(ValueError, match=damaged):
            nk.data.open_array(tmp_path / damaged)


def test_arrays_in_groups_and_columns_of_extension_types(tmp_path: Path, X: np.ndarray) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["words/vectors"], file["words/ids"] = X, np.arange(N)
    np.testing.assert_array_equal(read_vectors(f"{tmp_path}/a.h5:/words/vectors"), X)
    with pytest.raises(ValueError, match=r"holds 2 arrays; name one of .*a\.h5:words/ids, .*a\.h5:words/vectors"):
        read_vectors(tmp_path / "a.h5")
    names = [UUID(int=n) for n in range(N)]
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(X)
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([name.bytes for name in names], pa.binary(16)))
    pq.write_table(pa.table({"id": ids, "vector": tensors}), tmp_path / "a.parquet")
    file = open_vectors(tmp_path / "a.parquet")
    np.testing.assert_array_equal(file.read(), X)
    assert np.asarray(file.ids()).tolist() == [str(name) for name in names]
