"""Files that read others, or announce more than they hold: refused before a value is read or memory is taken."""

import io
import os
import struct
import zipfile
from pathlib import Path

import h5py
import numpy as np
import openpyxl
import pytest

import nearkin as nk
from nearkin.data import read_table
from tests.covering import each

X = np.arange(40, dtype=np.float32).reshape(10, 4)


def hdf5(folder: Path) -> dict[str, str]:
    """Data sets that are not, or not whole, in their files, and what is said of each."""
    X.tofile(folder / "secret")
    os.mkfifo(folder / "fifo")
    with h5py.File(folder / "other.h5", "w") as file:
        file["s"] = X
    layout = h5py.VirtualLayout((10, 4), "f4")
    layout[:] = h5py.VirtualSource(folder / "other.h5", "s", (10, 4))
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("raw", (10, 4), "f4", external=[(str(folder / "secret"), 0, 160)])
        file.create_dataset("fifo", (10, 4), "f4", external=[(str(folder / "fifo"), 0, 160)])
        file.create_virtual_dataset("virtual", layout)
        file["link"] = h5py.ExternalLink(str(folder / "other.h5"), "/s")
        file["soft"] = h5py.SoftLink("/link")
        file.create_dataset("chunks", (10**9, 100), "f4", chunks=(1000, 100))
        file.create_dataset("packed", (10**9, 100), "f4", chunks=(1000, 100), compression="gzip")
        file.create_dataset("filled", (10**9, 100), "f4", fillvalue=1)
        part = file.create_dataset("part", (1000, 4), "f4", chunks=(10, 4))
        part[:10] = X
    stored, others = "announces .* bytes, and its file stores 0", "is stored in other files"
    said = dict.fromkeys(("raw", "fifo", "virtual"), others) | dict.fromkeys(("link", "soft"), "is no array")
    return said | dict.fromkeys(("chunks", "packed", "filled", "part"), stored)


def test_hdf5_reads_its_own_stored_values_alone(tmp_path: Path) -> None:
    for name, said in hdf5(tmp_path).items():
        with pytest.raises(ValueError, match=said):
            nk.read_vectors(tmp_path / f"a.h5:{name}")


@each("options", [{}, {"compression": "gzip"}, {"compression": "lzf", "shuffle": True}, {"chunks": (3, 3)}])
def test_hdf5_that_is_whole_is_read(options: dict, tmp_path: Path) -> None:
    many = np.zeros((5000, 7), np.float32)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=many, **options)
    np.testing.assert_array_equal(nk.read_vectors(tmp_path / "a.h5:v"), many)


def test_an_unknown_filter_of_hdf5_is_refused(tmp_path: Path) -> None:
    """HDF5 would look for a plug-in."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((10, 4))
        made.set_filter(32_015, h5py.h5z.FLAG_OPTIONAL)
        h5py.h5d.create(file.id, b"v", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((10, 4)), made)
    with pytest.raises(ValueError, match=r"filters \[32015\]"):
        nk.read_vectors(tmp_path / "a.h5:v")


def test_sizes_that_an_archive_announces_are_compared_with_its_bytes(tmp_path: Path) -> None:
    shape, file = (10**7, 100), io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", file.getvalue() + bytes(1000))
    raw, size = bytearray((tmp_path / "a.npz").read_bytes()), struct.pack("<I", len(file.getvalue()) + 4 * 10**9)
    raw[22:26] = size
    place = raw.rfind(b"PK\1\2") + 24
    raw[place : place + 4] = size
    (tmp_path / "a.npz").write_bytes(raw)
    with pytest.raises(ValueError, match=r"announces 4,000,000,128 bytes, and its file stores 8\d of them"):
        nk.read_vectors(tmp_path / "a.npz")
    np.savez_compressed(tmp_path / "b.npz", X=np.zeros((100_000, 16), np.float32))  # 1,000 times smaller
    assert nk.read_vectors(tmp_path / "b.npz").shape == (100_000, 16)


def test_a_workbook_is_as_large_as_its_cells(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for place, value in {"A1": "a", "B1": "b", "A2": 1, "B2": 2, "A900000": 3, "B900000": 4}.items():
        book.worksheets[0][place] = value
    book.save(tmp_path / "a.xlsx")
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[sheet] = parts[sheet].replace(b"A1:B900000", b"A1:XFD1048576")
    bomb = parts | {sheet: parts[sheet].replace(b"</sheetData>", b" " * 20_000_000 + b"</sheetData>")}
    for name, content in {"wide": parts, "bomb": bomb}.items():
        with zipfile.ZipFile(tmp_path / f"{name}.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
            for part, data in content.items():
                archive.writestr(part, data)
    table = read_table(tmp_path / "wide.xlsx")
    assert {name: column.labels().tolist() for name, column in table.columns.items()} == {"a": [1, 3], "b": [2, 4]}
    with pytest.raises(ValueError, match=r"announces 20,000,\d+ bytes of xl/worksheets"):
        read_table(tmp_path / "bomb.xlsx")
