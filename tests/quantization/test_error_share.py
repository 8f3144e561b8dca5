"""The share of |e|^2 in distances."""

import numpy as np

from nearkin._faiss import nearest_rows
from nearkin.quantization.error_share import SHARE, best_share


def test_errors_that_say_nothing_get_the_least_share_and_equals_the_usual_one(rng: np.random.Generator) -> None:
    rows, queries = (rng.standard_normal((n, 8)).astype(np.float32) for n in (600, 100))
    noise = rng.gamma(1.0, 8.0, 600).astype(np.float32)
    assert best_share(rows, queries, rows, noise) == 0.1
    assert best_share(rows, queries, np.zeros_like(rows), noise) == SHARE  # any share orders the rows alike


def test_the_share_is_the_one_that_keeps_most(rng: np.random.Generator) -> None:
    """Against distances with a column each, searched by FAISS."""
    rows, queries = (rng.standard_normal((n, 6)).astype(np.float32) for n in (500, 80))
    decoded = (rows + 0.7 * rng.standard_normal(rows.shape) * rng.random((500, 1))).astype(np.float32)
    errors = np.square(rows - decoded).sum(axis=1)
    truth, kept = nearest_rows(rows, queries, 10), {}
    for share in (SHARE, 0.5, 0.33, 0.2, 0.1):
        wide = np.column_stack([decoded, np.sqrt(share * errors)])
        found = nearest_rows(wide, np.pad(queries, ((0, 0), (0, 1))), 10)
        kept[share] = sum(len(set(a) & set(b)) for a, b in zip(truth, found, strict=True))
    assert kept[best_share(rows, queries, decoded, errors)] == max(kept.values())
