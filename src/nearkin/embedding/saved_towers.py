"""Read a saved `TwoTower` without torch: embeddings and ids of both sides, and the pairs of the fit."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearkin._fields import StrPath
from nearkin._storage import one_version, read_arrays, read_config, unpack_ids
from nearkin.records import Interactions

KIND = "two-tower"


class SavedTowers(NamedTuple):
    """Embeddings (m, k) and (n, k), and the pairs that they were trained on, with the ids of both sides."""

    left: np.ndarray
    right: np.ndarray
    pairs: Interactions


def read_towers(path: StrPath) -> SavedTowers:
    """Both sides of the `TwoTower` in a folder; ValueError for a folder that is damaged or of another kind."""
    return one_version(path, _read)


def _read(path: Path) -> SavedTowers:
    read_config(path, KIND)
    embeddings, pairs = read_arrays(path / "embeddings.safetensors"), read_arrays(path / "pairs.safetensors")
    ids = unpack_ids("left", pairs), unpack_ids("right", pairs)
    columns = pairs["indptr"], pairs["indices"], pairs["weights"], *ids
    seen = Interactions(*columns, timestamps=pairs.get("timestamps"))
    return SavedTowers(embeddings["left"], embeddings["right"], seen)
