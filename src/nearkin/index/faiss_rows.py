"""Rows of a FAISS index by position: added, cut off, taken out, moved to another index.

Positions count rows in the order in which they were added. Where FAISS itself writes them down, in inverted lists, they
are counted again after a removal.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import faiss
import numpy as np

from nearkin._faiss import FaissIndex, clear_padding, innermost, move_to_full_blocks
from nearkin.contracts import BitCodes, Quantizer
from nearkin.index.faiss_file import inverted_file

METRICS = ("l2", "ip", "cosine", "hamming")  # what an index compares rows by


def flat_codes(index: FaissIndex) -> np.ndarray:
    """Codes (n, bytes) of an index of bits: FAISS's own memory, not a copy."""
    width = index.d // 8
    return faiss.rev_swig_ptr(cast(faiss.IndexBinaryFlat, index).xb.data(), index.ntotal * width).reshape(-1, width)


def cut(index: FaissIndex, n_rows: int) -> None:
    """Leave the first `n_rows` rows."""
    if innermost(index).ntotal > n_rows:
        _remove(index, faiss.IDSelectorRange(n_rows, np.iinfo(np.int64).max))


def remove(index: FaissIndex, positions: np.ndarray) -> None:
    """Take out the rows at sorted `positions` (m,); those behind them move up."""
    bitmap = np.zeros(-(-index.ntotal // 8), np.uint8)
    np.bitwise_or.at(bitmap, positions >> 3, np.left_shift(1, positions & 7).astype(np.uint8))
    _remove(index, faiss.IDSelectorBitmap(index.ntotal, faiss.swig_ptr(bitmap)))
    lists = inverted_file(index)
    if lists is None:
        return
    for i in range(lists.nlist):
        size = lists.invlists.list_size(i)
        if size:
            numbers = faiss.rev_swig_ptr(lists.invlists.get_ids(i), size)
            numbers -= np.searchsorted(positions, numbers)


def _remove(index: FaissIndex, selector: faiss.IDSelector) -> None:
    lists = inverted_file(index)
    if lists is not None:
        lists.set_direct_map_type(faiss.DirectMap.NoMap)  # it is made again when needed
    index.remove_ids(selector)
    clear_padding(index)
    index.ntotal = innermost(index).ntotal


def move(source: FaissIndex, target: FaissIndex) -> None:
    """Move all rows of `source`, an index of the same kind and quantizer, behind those of `target`."""
    if isinstance(target, faiss.IndexBinary):  # which FAISS cannot merge
        target.add(flat_codes(source).copy())
        source.reset()
        return
    shift = 0 if inverted_file(target) is None else target.ntotal  # only inverted lists write rows' numbers down
    inner, its_inner = innermost(target), innermost(source)
    for lists in filter(None, map(inverted_file, (target, source))):
        lists.set_direct_map_type(faiss.DirectMap.NoMap)  # FAISS merges only what has none
    if isinstance(inner, faiss.IndexIVFFastScan) and isinstance(its_inner, faiss.IndexIVFFastScan):
        move_to_full_blocks(its_inner, inner, shift)
    target.merge_from(cast(faiss.Index, source), shift)
    clear_padding(target)
    source.reset()  # `merge_from` leaves the count of rows in front of a rotation
    if isinstance(its_inner, faiss.IndexFastScan):
        its_inner.ntotal2 = 0  # the rows of its blocks, which FAISS (1.15.1) does not reset


class Made(NamedTuple):
    """How an index was made."""

    metric: str
    d: int
    faiss_index: FaissIndex
    quantizer: Quantizer | None


def check_mergeable(one: Made, other: Made) -> None:
    """ValueError unless the rows of `other` mean the same in `one`."""
    for what, own, its in (
        ("metric", one.metric, other.metric),
        ("number of columns", one.d, other.d),
        ("kind", *(type(innermost(index.faiss_index)).__name__ for index in (one, other))),
    ):
        if own != its:
            raise ValueError(f"indexes of another {what} cannot be merged: {its!r} into {own!r}")
    if not _same_codes(one, other):
        raise ValueError("indexes of different quantizers cannot be merged; build both with the same fitted quantizer")


def _same_codes(one: Made, other: Made) -> bool:
    if isinstance(one.quantizer, BitCodes):
        probes = np.random.default_rng(0).normal(size=(8, one.d))
        return isinstance(other.quantizer, BitCodes) and np.array_equal(
            one.quantizer.project(probes), other.quantizer.project(probes)
        )
    mine, theirs = trained_arrays(one.faiss_index), trained_arrays(other.faiss_index)
    return mine.keys() == theirs.keys() and all(
        (_close if name == "lists" else _equal)(array, theirs[name]) for name, array in mine.items()
    )


def trained_arrays(index: FaissIndex) -> dict[str, np.ndarray]:
    """What FAISS learned, and by what codes are read: "rotation" (d', d), "bias" (d',), "lists" (L, d') and the flat
    "codebooks" or "ranges", those of them that the index has."""
    found: dict[str, np.ndarray] = {}
    inner, lists = cast(Any, innermost(index)), inverted_file(index)
    index = index if isinstance(index, faiss.IndexBinary) else faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        turn = cast(faiss.LinearTransform, faiss.downcast_VectorTransform(index.chain.at(0)))
        found["rotation"] = faiss.vector_to_array(turn.A).reshape(turn.d_out, turn.d_in)
        if turn.have_bias:
            found["bias"] = faiss.vector_to_array(turn.b)
    if lists is not None:
        found["lists"] = lists.quantizer.reconstruct_n(0, lists.nlist)
    if hasattr(inner, "pq"):
        found["codebooks"] = faiss.vector_to_array(inner.pq.centroids)
    elif hasattr(inner, "aq"):
        found["codebooks"] = faiss.vector_to_array(inner.aq.codebooks)
    elif hasattr(inner, "sq"):
        found["ranges"] = faiss.vector_to_array(inner.sq.trained)
    return found


def codes_belong(index: FaissIndex, saved: Mapping[str, np.ndarray]) -> bool:
    """Whether the FAISS index was made by the quantizer whose saved arrays are given. Lists' centroids and the first
    codebook of residual codes are compared in number only: the index holds them turned or moved."""
    trained = trained_arrays(index)
    codebooks, coarse = saved.get("codebooks_"), saved.get("coarse_centroids_")
    if (0 if coarse is None else len(coarse)) != len(trained.get("lists", ())):
        return False
    if "rotation" in trained and not _equal(trained["rotation"].T, saved.get("rotation_")):
        return False
    if codebooks is None:
        scale = saved.get("scale_", saved.get("ranges_", np.empty(0)))  # older folders have the second name
        return "codebooks" not in trained and _equal(trained.get("ranges"), scale.ravel())
    if "codebooks" not in trained or hasattr(innermost(index), "pq") != (codebooks.ndim == 3):
        return False
    if codebooks.ndim == 3:  # product codes, whose centroids FAISS fills up to a power of two
        M, K, width = codebooks.shape
        pq = cast(faiss.IndexPQ, innermost(index)).pq
        return (
            (pq.M, pq.dsub) == (M, width)
            and K <= pq.ksub < 2 * K
            and _equal(trained["codebooks"].reshape(M, -1, width)[:, :K], codebooks)
        )
    return trained["codebooks"].size == codebooks.size and _equal(
        trained["codebooks"].reshape(codebooks.shape)[:, 1:], codebooks[:, 1:]
    )


def _equal(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other.astype(np.float32))


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether both are one product, whose last bits differ between machines."""
    return one.shape == other.shape and bool(np.linalg.norm(one - other) <= 1e-5 * np.linalg.norm(one))
