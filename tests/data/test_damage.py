"""Named cases of issue 14: files that killed the process, gave memory never written, or merged ids."""

import base64
import gzip
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearkin as nk
from tests.covering import each

NEGATIVE_ROWS = (  # a Parquet file of 81 bytes with a part of -64 rows: pyarrow ends the process
    "UEFSMRUEGRw1ABgGc2NoZW1hFQAAFgAZHBkMFgAWfyYAFgAAKCBwYXJxdWV0LWNwcC1hcnJvdyB2ZXJzaW9uIDI2LjAuMRkMAEUAAABQQVIx"
)


def test_a_small_parquet_file_does_not_end_the_process(tmp_path: Path) -> None:
    """A6."""
    path = tmp_path / "x.parquet"
    path.write_bytes(base64.b64decode(NEGATIVE_ROWS))
    code = f"import nearkin as nk\ntry:\n  nk.read_vectors({str(path)!r})\nexcept ValueError as error:\n  print(error)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (child.returncode, "is damaged: its header announces 0 rows" in child.stdout) == (0, True), child.stderr
    for read in (nk.read_interactions, nk.read_comparisons, nk.data.read_column, nk.data.read_features):
        with pytest.raises(ValueError, match="is damaged"):
            read(path)


def test_a_quoted_line_break_among_vectors_is_refused(tmp_path: Path) -> None:
    """B1: three lines, two rows: the third row of the answer was memory that nobody had written."""
    path = tmp_path / "X.csv"
    path.write_text('f0,f1\n3,"4\n5",6\n')
    with pytest.raises(ValueError, match="line 2: Expected 2 columns, got 3"):
        nk.read_vectors(path)
    path.write_text('f0,f1\n1,2\n3,"4"\n')
    np.testing.assert_array_equal(nk.read_vectors(path), [[1, 2], [3, 4]])


def test_the_parts_of_a_split_do_not_wrap() -> None:
    """256 became 0 by its last byte."""
    for part in (256, -1, 0.5, np.nan):
        with pytest.raises(ValueError, match="split holds"):
            nk.Interactions.from_pairs([1, 2], [1, 2], split=np.array([0, part]))


def test_missing_times_are_refused() -> None:
    """NaT was a time of minus 292 billion years."""
    times = np.array(["2020-01-01", "NaT"], "datetime64[s]")
    with pytest.raises(ValueError, match=r"1 missing time, the first at entry 1"):
        nk.Interactions.from_pairs([1, 2], [1, 2], timestamps=times)
    with pytest.raises(TypeError, match="left has ids that are not all numbers, or all text"):
        nk.Interactions.from_pairs(times, [1, 2])


def test_huge_features_do_not_become_zeros(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("item,price\na,1e300\nb,-1e300\nc,0\n")
    _, X, _ = nk.data.read_features(tmp_path / "f.csv")
    np.testing.assert_allclose(X[:, 0], np.array([1, -1, 0]) * np.sqrt(1.5), rtol=1e-6)


def _npz(path: Path, change) -> None:
    np.savez(path, X=np.ones((5, 3), np.float32))
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(bytes(data))


def _archive(path: Path, header: bytes, method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("X.npy", header)


def _npy_header(shape: str, descr: str = "'<f4'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


DIRECTORY = b"PK\x01\x02"  # where a zip begins to list its members
DAMAGES: dict[str, Callable[[Path], object]] = {
    "encrypted.npz": lambda p: _npz(p, lambda d: d.__setitem__(at := d.rfind(DIRECTORY) + 8, d[at] | 1)),
    "method.npz": lambda p: _npz(p, lambda d: d.__setitem__(d.rfind(DIRECTORY) + 10, 99)),
    "short.npz": lambda p: _archive(p, _npy_header("(5, 3)") + bytes(40)),
    "huge.npz": lambda p: _archive(p, _npy_header("(1000000000000, 3)") + bytes(60)),
    "huge.npy": lambda p: p.write_bytes(_npy_header("(1000000000000, 3)") + bytes(60)),
    "negative.npy": lambda p: p.write_bytes(_npy_header("(-5, 3)") + bytes(60)),
    "nested.npy": lambda p: p.write_bytes(_npy_header("(" * 90) + bytes(60)),
    "void.npy": lambda p: p.write_bytes(_npy_header("(5, 3)", "'|V0'")),
    "wide.npy": lambda p: np.save(p, np.zeros((1, 5_000_000), np.uint8)),
    "wide.csv": lambda p: p.write_text("1," * 1_000_000 + "1\n"),
    "blank.csv": lambda p: p.write_text("\n"),
    "cell.csv": lambda p: p.write_text(f'a,b,"{"x" * 140_000}"\nb,c,a\n'),
    "utf16.csv": lambda p: p.write_text("a,b,c\nb,a,c\n", encoding="utf-16-le"),
    "latin.csv": lambda p: p.write_bytes("é,b,c\nb,é,c\n".encode("latin-1")),
    "open.csv": lambda p: p.write_text('a,b,c\nb,"a,c\n'),
    "cut.csv.gz": lambda p: p.write_bytes(gzip.compress(b"user,item,rating\nann,7,5.0\n" * 50)[:50]),
    "none.parquet": lambda p: pq.write_table(pa.table({}), p),
    "double.parquet": lambda p: pq.write_table(pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"]), p),
    "fifo.npy": os.mkfifo,
}


@each("name", DAMAGES)
def test_every_damage_is_one_clear_error(tmp_path: Path, name: str) -> None:
    """Part C: no other type of exception, no hang, no allocation before the sizes are checked; the file is named."""
    DAMAGES[name](tmp_path / name)
    readers = [nk.read_vectors, nk.data.read_column, nk.data.read_neighbors]
    if not name.endswith(".npy"):
        readers += [nk.read_interactions, nk.read_comparisons, nk.data.read_features]
    for read in readers:
        if name in ("blank.csv", "wide.npy", "cell.csv") and read is not nk.read_vectors:
            continue  # for some readers these are tables
        with pytest.raises(ValueError, match=name) as found:
            read(tmp_path / name)
        assert type(found.value) is ValueError
        assert len(str(found.value)) < 600


def test_an_archive_of_another_compression_is_read(tmp_path: Path) -> None:
    _archive(tmp_path / "X.npz", _npy_header("(5, 3)") + bytes(60), zipfile.ZIP_LZMA)
    assert nk.read_vectors(tmp_path / "X.npz").tolist() == [[0.0] * 3] * 5


def test_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="is a device"):
        nk.read_vectors("/dev/zero")
