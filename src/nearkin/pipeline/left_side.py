"""The left side beside a trained index: vectors and ids that ask, and the pairs that are known already."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from nearkin._check import check_integer
from nearkin._storage import pack_ids, read_arrays, unpack_ids, write_arrays
from nearkin.linalg.orthonormal import unit_rows
from nearkin.records import Interactions

LEFT = "left.safetensors"


def save_left(folder: Path, vectors: np.ndarray, seen: Interactions) -> None:
    """Write the left vectors (m, d), their ids, and the seen pairs by the index's positions, with their weights."""
    arrays = {"vectors": vectors, "indptr": seen.indptr, "indices": seen.indices, "weights": seen.weights}
    write_arrays(folder / LEFT, arrays | pack_ids("left", seen.left_ids))


@dataclass(frozen=True)
class LeftSide:
    """Ids (m,) and vectors (m, d) of the left entities; `seen(i)` are the index's positions of the pairs known of i."""

    ids: np.ndarray
    vectors: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray

    def seen(self, row: int) -> np.ndarray:
        return self.indices[self.indptr[row] : self.indptr[row + 1]]


def read_left(folder: str | os.PathLike) -> LeftSide | None:
    """What `save_left` wrote; None for a folder without a left side."""
    file = Path(folder) / LEFT
    if not file.is_file():
        return None
    arrays = read_arrays(file)
    return LeftSide(unpack_ids("left", arrays), arrays["vectors"], arrays["indptr"], arrays["indices"])


def search_left(
    folder: str | os.PathLike,
    left_ids: list[str],
    k: int = 10,
    *,
    with_seen: bool = False,
    index: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and right ids, both (b, k), of the left entities named by text, seen pairs left out unless asked for.

    `index` is the folder's, where it is open already. ValueError for a folder without left vectors and for an unknown
    id.
    """
    k = check_integer(k, "k", low=1)
    index = nk.Index.load(folder) if index is None else index
    left = read_left(folder)
    if left is None:
        raise ValueError(f"{folder} holds no left vectors; make it with `nearkin train`, or give query vectors")
    rows = find_ids(left_ids, left.ids)
    most = 0 if with_seen else int(np.diff(left.indptr)[rows].max(initial=0))
    scores, found = index.search(left.vectors[rows], k + most)
    if with_seen:
        return scores[:, :k], found[:, :k]
    known = index.ids if index.ids is not None else np.arange(len(index))
    struck = np.stack([np.isin(f, known[left.seen(r)]) for f, r in zip(found, rows, strict=True)])
    order = np.argsort(struck, axis=1, kind="stable")[:, :k]
    scores = np.where(struck, -np.inf, scores)
    return np.take_along_axis(scores, order, 1), np.take_along_axis(found, order, 1)


def find_ids(wanted: list[str], ids: np.ndarray) -> np.ndarray:
    """Positions of ids given as text; ValueError that shows some known ones."""
    positions = {str(value): place for place, value in enumerate(ids.tolist())}
    missing = [name for name in wanted if name not in positions]
    if missing:
        some = ", ".join(map(str, ids[:5].tolist()))
        raise ValueError(f"left id {missing[0]!r} is not among the {len(ids):,} left ids; they are such as {some}")
    return np.array([positions[name] for name in wanted], dtype=np.int64)


def neighbours_by_id(
    vectors: np.ndarray, ids: np.ndarray, places: np.ndarray, k: int = 5
) -> Sequence[Sequence[object]]:
    """For each place, its id and the k ids of largest cosine among `vectors` (n, d)."""
    X = unit_rows(vectors)
    scores = X[places] @ X.T
    scores[np.arange(len(places)), places] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return [[ids[place].item(), *ids[near].tolist()] for place, near in zip(places, order, strict=True)]


def move_seen(old: Path, new: Path, places: np.ndarray) -> None:
    """Write the left side of an index whose rows have moved: row i stands at places[i] now, -1 where it is gone."""
    arrays = read_arrays(old)
    indptr, moved = arrays["indptr"], places[arrays["indices"]]
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    there = moved >= 0
    rows, moved = rows[there], moved[there]
    order = np.lexsort((moved, rows))
    counts = np.bincount(rows, minlength=len(indptr) - 1)
    structure = {"indptr": np.concatenate([[0], np.cumsum(counts)]).astype(indptr.dtype), "indices": moved[order]}
    if "weights" in arrays:  # not in folders of before
        structure["weights"] = arrays["weights"][there][order]
    write_arrays(new, arrays | structure)
