"""Both sides of a folder of pairs: who asks, what is found, and what is known already."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import scipy.sparse as sp

import nearkin as nk
from nearkin._pairs import number_ids
from nearkin._storage import one_version, read_arrays, read_config, unpack_ids
from nearkin._types import ArrayLike
from nearkin.embedding import saved_towers
from nearkin.index import identifiers
from nearkin.pipeline.embedding_folder import MAP, Words, words_of
from nearkin.pipeline.folder import RUN, read_record
from nearkin.pipeline.left_side import LEFT
from nearkin.records import Interactions

_KINDS = {"index": "an index", MAP: "coordinates of comparisons"}


@dataclass(frozen=True)
class Sides:
    """Left vectors (m, d), right vectors (n, d) or a coded index of them, their ids, and the seen pairs (m, n)."""

    left: np.ndarray
    left_ids: np.ndarray
    right: Any
    right_ids: np.ndarray
    seen: sp.csr_matrix
    words: Words

    def vectors(self) -> np.ndarray:
        """(n, d) vectors of the right side, decoded where there are codes."""
        return self.right.reconstruct_n(0, self.right.ntotal) if isinstance(self.right, faiss.Index) else self.right

    def left_rows(self, names: ArrayLike) -> np.ndarray:
        """Row numbers of left ids, given as they are or as text; ValueError that shows some for an unknown one."""
        return numbers_of(names, self.left_ids, self.words.left)

    def right_rows(self, names: ArrayLike) -> np.ndarray:
        """The same for right ids."""
        return numbers_of(names, self.right_ids, self.words.right)


def open_sides(folder: str | os.PathLike, index: str | os.PathLike | None = None) -> Sides:
    """The sides in a folder of `nearkin embed` (pairs) or `nearkin train`; ValueError for any other.

    `index` is a folder of `nearkin compress` made of the first one's right side, which then ranks in its place.
    """
    found = one_version(folder, _sides)
    return found if index is None else with_index(found, nk.Index.load(index), str(index))


def _sides(path: Path) -> Sides:
    kind = read_config(path)["kind"]
    if kind == saved_towers.KIND:
        towers = saved_towers.read_towers(path)
        pairs = towers.pairs
        return Sides(towers.left, pairs.left_ids, towers.right, pairs.right_ids, pairs.matrix(), words_of(path))
    if (path / LEFT).is_file():
        return _trained(path)
    raise ValueError(
        f"{path} holds {_KINDS.get(kind, kind)}, and nobody to recommend to; give a folder of `nearkin embed` "
        "made of pairs, or of `nearkin train`. For what is like what: nearkin similar"
    )


def _trained(path: Path) -> Sides:
    arrays, index = read_arrays(path / LEFT), nk.Index.load(path)
    right_ids = np.arange(len(index)) if index.ids is None else index.ids
    indptr, indices = arrays["indptr"], arrays["indices"]
    seen = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(arrays["vectors"]), len(index)))
    left_ids = unpack_ids("left", arrays)
    return Sides(arrays["vectors"], left_ids, index.faiss_index, right_ids, seen, words_of(path))


def with_index(sides: Sides, index: nk.Index, name: str) -> Sides:
    """The sides with the rows of an index on the right; ValueError where it is of other ids or not by inner product."""
    if index.metric != "ip":
        raise ValueError(f"{name} ranks by {index.metric}; pairs rank by inner product: compress with --metric ip")
    own = np.arange(len(index)) if index.ids is None else index.ids
    if own.dtype.kind != sides.right_ids.dtype.kind or not np.isin(own, sides.right_ids).all():
        raise ValueError(f"{name} holds rows under other ids than the right side; compress the same folder again")
    places = identifiers.positions(sides.right_ids, len(sides.right_ids), own)
    return replace(sides, right=index.faiss_index, right_ids=own, seen=sp.csr_matrix(sides.seen[:, places]))


def with_histories(sides: Sides, folder: str | os.PathLike, history: Interactions) -> Sides:
    """The same right side, asked by new entities that are known by their pairs alone (fold-in, no training)."""
    if read_config(folder)["kind"] == saved_towers.KIND:
        left = nk.TwoTower.load(folder).embed_left(history)
    else:
        left = _folded(sides, Path(folder), history)
    columns = number_ids(history.right_ids, sides.right_ids, "right")[0]
    known = sp.coo_matrix(history.matrix())
    seen = sp.csr_matrix((known.data, (known.row, columns[known.col])), (len(left), len(sides.right_ids)))
    return replace(sides, left=left, left_ids=history.left_ids, seen=seen)


def _folded(sides: Sides, path: Path, history: Interactions) -> np.ndarray:
    """New rows (b, d) for an index of `nearkin train`: its loss solved against the vectors that its codes stand for."""
    from nearkin.embedding.two_tower.fold_in import FittedLoss, Known, fold_in  # torch: only newcomers need it
    from nearkin.embedding.two_tower.objective import AllPairs

    arrays, run = read_arrays(path / LEFT), read_record(path, RUN) or {}
    if run.get("loss") != "all-pairs" or "omega" not in run or "weights" not in arrays:
        raise ValueError(
            f"{path} does not hold what newcomers are placed by: train it again with --loss all-pairs, the default"
        )
    pairs = Interactions(arrays["indptr"], arrays["indices"], arrays["weights"], sides.left_ids, sides.right_ids)
    known = Known(sides.right_ids, sides.vectors(), "right", np.ones(len(sides.right_ids)))
    return fold_in(history, known, FittedLoss(AllPairs(), run["omega"], run["regularization"], pairs), None, None)


def numbers_of(names: ArrayLike, ids: np.ndarray, word: str) -> np.ndarray:
    """Positions (b,) of names among ids, compared as text; ValueError that shows some known ones."""
    positions = {str(value): place for place, value in enumerate(ids.tolist())}
    wanted = [str(name) for name in np.asarray(names).tolist()]
    missing = [name for name in wanted if name not in positions]
    if missing:
        some = ", ".join(map(str, ids[:5].tolist()))
        many = f" (and {len(missing) - 1:,} others)" if len(missing) > 1 else ""
        raise ValueError(f"{word} {missing[0]!r}{many} is not among the {len(ids):,} known; they are such as {some}")
    return np.array([positions[name] for name in wanted], dtype=np.int64)
