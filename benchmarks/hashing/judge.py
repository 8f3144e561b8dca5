"""Codes and rankings against labels and exact neighbours."""

import numpy as np

from benchmarks.hashing.problems import Features
from nearkin._exact import nearest
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics.hamming import RankHistograms, hamming_histograms

N_NEIGHBOURS = 100  # exact cosine neighbours, as relevant rows of the second goal
NEIGHBOUR_QUERIES = 2000  # queries for it


class Judge:
    """Codes or rankings to the four numbers of a row; exact neighbours are found once."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.some = np.random.default_rng(0).permutation(len(features.queries))[:NEIGHBOUR_QUERIES]
        self.neighbours = nearest(unit_rows(features.base), unit_rows(features.queries[self.some]), N_NEIGHBOURS)[1]

    def codes(self, queries: np.ndarray, base: np.ndarray, spherical: bool = False) -> dict[str, float]:
        """Measures of packed codes, in percent."""
        histograms = spherical_histograms if spherical else hamming_histograms
        near = histograms(queries[self.some], base, neighbours=self.neighbours)
        row = by_labels(queries, base, self.features, spherical)
        return row | {"neighbour map": 100 * float(near.average_precision().mean())}

    def ranking(self, ids: np.ndarray) -> dict[str, float]:
        """Measures of full rankings (q, n) of the first queries of `some`; ties are in the order given."""
        rows = self.some[: len(ids)]
        labels = self.features.base_labels[ids] == self.features.query_labels[rows][:, None]
        positions = np.argsort(ids, axis=1)
        near = np.zeros_like(labels)
        np.put_along_axis(near, np.take_along_axis(positions, self.neighbours[: len(ids)], axis=1), True, axis=1)
        by_label, by_neighbour = (
            RankHistograms(np.ones(hits.shape, np.int64), hits.astype(np.int64)) for hits in (labels, near)
        )
        return {
            "map": 100 * float(by_label.average_precision().mean()),
            "prec@1k": 100 * float(by_label.precision_at(1000).mean()),
            "neighbour map": 100 * float(by_neighbour.average_precision().mean()),
        }


def by_labels(queries: np.ndarray, base: np.ndarray, f: Features, spherical: bool = False) -> dict[str, float]:
    """mAP, precision within Hamming radius 2 and at 1,000 of packed codes, in per cent."""
    near = ranks = hamming_histograms(queries, base, f.query_labels, f.base_labels)
    if spherical:
        ranks = spherical_histograms(queries, base, f.query_labels, f.base_labels)
    return {
        "map": 100 * float(ranks.average_precision().mean()),
        "prec@r2": 100 * float(near.precision_within(2).mean()),
        "prec@1k": 100 * float(ranks.precision_at(1000).mean()),
    }


def spherical_histograms(
    queries: np.ndarray,
    base: np.ndarray,
    query_labels: np.ndarray | None = None,
    base_labels: np.ndarray | None = None,
    *,
    neighbours: np.ndarray | None = None,
) -> RankHistograms:
    """`hamming_histograms` of the spherical distance |a xor b| / |a and b| (Heo et al. 2012); one bin for each value.

    Codes without a common bit are infinitely far from each other. A bin is a value, so `precision_within` has no use.
    """
    size = 8 * queries.shape[1] + 1
    xor, both = np.mgrid[0:size, 0:size]
    values, bins = np.unique(_ratios(xor, both), return_inverse=True)
    bins = bins.reshape(xor.shape)
    total, relevant = np.zeros((2, len(queries), len(values)), np.int64)
    for i, query in enumerate(queries):
        found = bins[tuple(np.bitwise_count(codes).sum(axis=1) for codes in (query ^ base, query & base))]
        if neighbours is None:
            near = found[base_labels == query_labels[i]]  # pyright: ignore[reportOptionalSubscript]
        else:
            near = found[neighbours[i]]
        total[i], relevant[i] = (np.bincount(rows, minlength=len(values)) for rows in (found, near))
    return RankHistograms(total, relevant)


def _ratios(xor: np.ndarray, both: np.ndarray) -> np.ndarray:
    return np.divide(xor, both, out=np.full(xor.shape, np.inf), where=both > 0)
