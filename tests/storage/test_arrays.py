from pathlib import Path

import numpy as np
import pytest

from nearkin._storage import map_rows, read_arrays, write_arrays


def test_arrays_round_trip_and_damage_is_named(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3)[:, ::-1], "b": np.ones(3, np.float32)}
    write_arrays(tmp_path / "a.safetensors", arrays)
    back = read_arrays(tmp_path / "a.safetensors")
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
    (tmp_path / "a.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="begins with b'nothing"):
        read_arrays(tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="is missing"):
        read_arrays(tmp_path / "b.safetensors")


def test_a_header_that_is_no_python_is_damage(tmp_path: Path) -> None:
    """Before, the parser's IndentationError came through (campaign, seed 4141, case 28839)."""
    path = tmp_path / "vectors.npy"
    python_2 = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4L, 4), }\n"
    for header in (b"{'descr': '<f4', 'shape': (2,\n  )}\n 1", b"{'shape': (((", b"\x00\xff'", python_2):
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64))
        with pytest.raises(ValueError, match=r"vectors\.npy cannot be read"):
            map_rows(path)
