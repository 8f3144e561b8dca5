"""Named arrays in a .safetensors file, and ids as such arrays."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

from nearkin._storage.files import open_file


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays to a .safetensors file."""
    # not `save_file`, which makes files that nobody but their owner can read
    path.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the named arrays of a .safetensors file; ValueError if it is missing or damaged."""
    with open_file(path) as file:
        content = file.read()
    try:
        return load(content)
    except Exception as error:  # safetensors has its own error type for every kind of damage
        raise ValueError(f"{path} cannot be read ({error}); the file is damaged") from error


def pack_ids(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Ids (n,) as named arrays for a .safetensors file, which knows no strings: text as UTF-8 bytes and their ends."""
    if ids.dtype.kind in "iuf":
        return {f"{name}_ids": ids}
    if ids.dtype.kind in "bM":
        return {f"{name}_ids": ids.astype(np.int64)}
    encoded = [str(value).encode() for value in ids]
    ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
    return {f"{name}_ids_text": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}_ids_ends": ends}


def unpack_ids(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The ids that `pack_ids` packed under `name`."""
    if f"{name}_ids" in arrays:
        return arrays[f"{name}_ids"]
    text, ends = arrays[f"{name}_ids_text"].tobytes(), arrays[f"{name}_ids_ends"]
    starts = np.concatenate([[0], ends])[:-1]
    return np.array([text[a:b].decode() for a, b in zip(starts, ends, strict=True)], dtype=str)
