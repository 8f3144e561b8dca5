"""Which indexes can be merged: those whose codes mean the same."""

from typing import NamedTuple

import faiss
import numpy as np

from nearkin._faiss import FaissIndex, innermost
from nearkin.contracts import BitCodes, Quantizer, VectorCodes


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
    if one.quantizer is not other.quantizer and not _same_codes(one.quantizer, other.quantizer, one.d):
        raise ValueError("indexes of different quantizers cannot be merged; build both with the same fitted quantizer")


def _same_codes(one: Quantizer | None, other: Quantizer | None, d: int) -> bool:
    """Whether two quantizers give the same codes, by what they are made of."""
    if isinstance(one, BitCodes):
        probes = np.random.default_rng(0).normal(size=(8, d))
        return isinstance(other, BitCodes) and np.array_equal(one.project(probes), other.project(probes))
    if not isinstance(one, VectorCodes) or not isinstance(other, VectorCodes):
        return False
    mine, theirs = (faiss.serialize_index(quantizer.to_faiss()) for quantizer in (one, other))
    return np.array_equal(mine, theirs)
