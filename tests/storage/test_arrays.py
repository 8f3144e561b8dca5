import numpy as np
import pytest

from nearkin._storage import read_arrays, write_arrays


def test_arrays_round_trip_and_damage_is_named(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3)[:, ::-1], "b": np.ones(3, np.float32)}
    write_arrays(tmp_path / "a.safetensors", arrays)
    back = read_arrays(tmp_path / "a.safetensors")
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
    (tmp_path / "a.safetensors").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="damaged"):
        read_arrays(tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match="is missing"):
        read_arrays(tmp_path / "b.safetensors")
