"""What a folder of named arrays holds, read once: an estimator can be made of it later, whatever becomes of it."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearkin._storage.arrays import read_arrays
from nearkin._storage.folders import read_config
from nearkin._storage.reading import one_version
from nearkin._types import Record


@dataclass(frozen=True)
class SavedArrays:
    """Where a folder lay, its config.json, and the arrays beside it."""

    path: Path
    config: Record
    arrays: dict[str, np.ndarray]


def read_saved(source: str | os.PathLike[str] | SavedArrays, kind: str | None = None) -> SavedArrays:
    """Read a folder whole, of one version; what was read already is given back. ValueError for another kind."""
    found = source if isinstance(source, SavedArrays) else one_version(source, _read)
    if kind is not None and found.config["kind"] != kind:
        raise ValueError(f"{found.path} holds the kind {found.config['kind']!r}; {kind!r} is needed")
    return found


def _read(path: Path) -> SavedArrays:
    return SavedArrays(path, read_config(path), read_arrays(path / "arrays.safetensors"))
