"""Hashing methods, lengths and scales compared on the user's rows: SCQ's Table 2 and Figure 4."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nearkin._types import Record, Seed
from nearkin.contracts import Callback, ignore
from nearkin.hashing.scale_search import Split, split_rows
from nearkin.hashing.spectrum import principal_axes, scale_of
from nearkin.linalg.signs import row_blocks
from nearkin.pipeline.methods import CodeSize, methods

MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # of eq. 25's scale
LEARNED_AT_ONCE = ("one", "oge")  # the methods whose scale matters
Candidate = tuple[Any, Record]  # an unfitted hasher, and the settings in its entry
_SAMPLES, _QUERIES, _NEIGHBOURS = 5000, 500, 100
STUDIED_ROWS = _SAMPLES + _QUERIES


def study_hashing(
    X: np.ndarray,
    n_bits: int,
    labels: np.ndarray | None = None,
    *,
    random_state: Seed = 0,
    callback: Callback = ignore,
) -> Record:
    """Judge every hashing method at several lengths around `n_bits`, and OnE and OgE at several scales.

    Learns from at most 5,000 of the rows X (n, d) and judges by at most 500 others; the queries of an evaluation are
    not used. Each entry has "neighbour map", the mean average precision of the 100 exact neighbours by cosine, and with
    `labels` (n,) "label map". Returns {"rows", "queries", "bits": [entry], "scales": [entry]}, without entries for
    methods that cannot make codes of that length from these rows.
    """
    split = split_rows(X, labels, _QUERIES, _SAMPLES, _NEIGHBOURS, "cosine", np.random.default_rng(random_state))
    candidates = [*_lengths(X.shape[1], n_bits, random_state), *_scales(split.train, n_bits, random_state)]
    entries = []
    for done, (hasher, about) in enumerate(candidates, 1):
        entries.append(_entry(split, hasher, about))
        callback(done, {"total": len(candidates)})
    found = [entry for entry in entries if entry is not None]
    return {
        "rows": len(split.train),
        "queries": len(split.queries),
        "bits": [entry for entry in found if "bits" in entry],
        "scales": [entry for entry in found if "multiple" in entry],
    }


def _lengths(width: int, n_bits: int, random_state: Seed) -> Iterator[Candidate]:
    """Every hashing method at half, once and twice the bits, up to the width of the rows."""
    for length in sorted({max(8, n_bits // 2), n_bits, 2 * n_bits}):
        for method in methods().values():
            if method.metrics == ("hamming",) and length <= width:
                yield method.make(CodeSize(n_bits=length), random_state), {"method": method.name, "bits": length}


def _scales(train: np.ndarray, n_bits: int, random_state: Seed) -> Iterator[Candidate]:
    """OnE and OgE at multiples of the scale of SCQ's eq. 25."""
    eq25 = scale_of("eq25", principal_axes(lambda: row_blocks(train), n_bits).variances, n_bits)
    for name in LEARNED_AT_ONCE:
        for multiple in MULTIPLES:
            hasher = methods()[name].make(CodeSize(n_bits=n_bits), random_state)
            yield hasher.set_params(scale=float(multiple * eq25)), {"method": name, "multiple": multiple}


def _entry(split: Split, hasher: Any, about: Record) -> Record | None:
    """The measures of a candidate; None if there are too few rows, or of too low a rank, for its codes."""
    try:
        by_labels, by_neighbours = split.judge(hasher)
    except ValueError:
        return None
    entry = about | {"neighbour map": by_neighbours}
    if split.train_labels is not None:
        entry["label map"] = by_labels
    if "multiple" in about:
        entry["loss per bit"] = float(hasher.quantization_error(split.train))
        entry["retained variance"] = float(hasher.retained_variance(split.train))
    return entry
