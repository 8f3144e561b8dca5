"""Laws of every search, measure and trial: an offset of columns (by distances), the order of the rows, the batch, the
type of the numbers and another call change nothing.

Values are sixteenths, so that float32 holds them exactly behind an offset. A batch has so many queries that FAISS
expands squared distances; near duplicates lie a sixteenth of a column apart."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import nearkin as nk
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.searching import normalised
from nearkin.jobs.evaluate import exact_neighbors
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.metrics.trial import HeldOut

N, BATCH, D, K, ALONE = 240, 2_010, 64, 6, 12
Found = tuple[np.ndarray, np.ndarray]  # scores, and row numbers, (q, c)
SOME = settings(max_examples=2, deadline=None, derandomize=True, database=None, phases=[Phase.generate])


@dataclass(frozen=True)
class Data:
    """Rows (n, d), queries (q, d) and their numbers (q,), and the number (n,) of each row before it was moved."""

    X: np.ndarray
    Q: np.ndarray
    queries: np.ndarray
    names: np.ndarray

    def ids(self, names: np.ndarray) -> np.ndarray:
        """The present row numbers of these."""
        return np.argsort(self.names)[names]

    def moved(self, offset: np.ndarray) -> "Data":
        return replace(self, X=self.X + offset, Q=self.Q + offset)

    def permuted(self, seed: int) -> "Data":
        order = np.random.default_rng(seed).permutation(N)
        return replace(self, X=self.X[order], names=self.names[order])

    def asked(self, query: int) -> "Data":
        return replace(self, Q=self.Q[query : query + 1], queries=self.queries[query : query + 1])

    def as_float64(self) -> "Data":
        return replace(self, X=self.X.astype(np.float64), Q=self.Q.astype(np.float64))


def searched(data: Data, metric: str = "l2", **how: object) -> Found:
    scores, ids = nk.Index.build(data.X, metric=metric).search(data.Q, K, **how)
    return scores, data.names[ids]


def searched_among(data: Data, way: str) -> Found:
    return searched(data, **{way: data.ids(np.arange(0, N, 3))})


def within(data: Data) -> Found:
    limits, scores, ids = nk.Index.build(data.X).search_radius(data.Q, 80.0)
    counts = np.diff(limits)
    places = np.arange(len(data.Q)).repeat(counts), np.concatenate([np.arange(count) for count in counts])
    found = np.full((2, len(data.Q), N), np.inf)
    found[0][places], found[1][places] = scores, data.names[ids]
    return found[0], found[1]


def similar(data: Data) -> Found:
    scores, ids = nk.Index.build(data.X).similar(data.ids(data.queries % N), K)
    return scores, data.names[ids]


def rescored(data: Data) -> Found:
    """Of 48 candidates by codes that are nearly exact."""
    index = nk.Index.build(data.X, nk.quantization.ScalarQuantizer(8), keep_vectors="float32")
    scores, ids = index.search(data.Q, K, oversample=8)
    return scores, data.names[ids]


def of_neighbours(data: Data, metric: str = "l2") -> Found:
    unit = normalised if metric == "cosine" else np.asarray
    exact = ExactNeighbours.of(unit(data.X), unit(data.Q), K, metric)
    return exact.distances(np.arange(len(data.Q)), exact.ids), data.names[exact.ids]


def of_a_file(data: Data) -> Found:
    exact = exact_neighbors(VectorFile("X", array_rows(data.X)), data.Q, K)
    return exact.distances(np.arange(len(data.Q)), exact.ids), data.names[exact.ids]


def measured(data: Data) -> Found:
    """The recall of every third row, of each query by itself."""
    some = np.tile(data.ids(np.arange(0, N, 3)), (len(data.Q), 1))
    values = ExactNeighbours.of(data.X, data.Q, 40).recalls(some, [(40, 60)])
    each = [nk.metrics.knn_recall(some[:1, :40], data.X, query[None]) for query in data.Q[:ALONE]]
    if len(each) == ALONE:  # the mean of a batch is that of its queries
        whole = nk.metrics.knn_recall(some[:, :40], data.X, np.resize(data.Q[:ALONE], data.Q.shape))
        assert whole == pytest.approx(np.resize(each, len(data.Q)).mean())
    return np.column_stack([*values.values()]), np.zeros((len(data.Q), 1))


def tried(data: Data) -> Found:
    """The recall of rows rounded to halves about the first one."""
    first = data.X[data.ids(np.zeros(1, np.int64))]
    values = HeldOut.of(data.X, data.Q).recall((np.rint(2 * (data.X - first)) / 2 + first).astype(data.X.dtype))
    return values[:, None], np.zeros((len(values), 1))


DISTANCES: dict[str, Callable[[Data], Found]] = {
    "search": searched,
    "search among": partial(searched_among, way="among"),
    "search without": partial(searched_among, way="exclude"),
    "search_radius": within,
    "similar": similar,
    "rescored": rescored,
    "exact neighbours": of_neighbours,
    "exact neighbours in a file": of_a_file,
    "knn_recall": measured,
    "trial": tried,
}
PRODUCTS: dict[str, Callable[[Data], Found]] = {
    f"{name} by {metric}": partial(door, metric=metric)
    for name, door in (("search", searched), ("exact neighbours", of_neighbours))
    for metric in ("ip", "cosine")
}


@st.composite
def some_data(draw: st.DrawFn) -> Data:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = rng.normal(size=(N + BATCH, D))
    if draw(st.booleans()):  # each close to one of ten
        rows = rows[rng.integers(0, 10, len(rows))] + (rng.integers(0, D, len(rows))[:, None] == np.arange(D)) / 16
    rows = (np.rint(16 * rows) / 16).astype(np.float32)
    return Data(rows[:N], rows[N:], np.arange(BATCH), np.arange(N))


@st.composite
def offsets(draw: st.DrawFn) -> np.ndarray:
    columns = draw(st.sampled_from([1, 3, D]))
    size = draw(st.sampled_from([3_000, 100_000]))
    return np.where(np.arange(D) < columns, np.float32(size), np.float32(0))


def same(one: Found, other: Found, law: str) -> None:
    """Scores are the same; so are the rows, but for ones at equal distances."""
    np.testing.assert_array_equal(one[0], other[0], err_msg=law)
    places = np.isfinite(one[0]) & (one[0] != np.roll(one[0], 1, axis=1)) & (one[0] != np.roll(one[0], -1, axis=1))
    places[:, -1] = False  # the next one may be as far
    np.testing.assert_array_equal(one[1][places], other[1][places], err_msg=law)


def keeps_the_laws(door: Callable[[Data], Found], data: Data, seed: int) -> Found:
    found = door(data)
    same(found, door(data), "another call")
    same(found, door(data.as_float64()), "float64")
    same(found, door(data.permuted(seed)), "the order of the rows")
    for query in range(ALONE):
        same((found[0][[query]], found[1][[query]]), door(data.asked(query)), "one query or a batch")
    return found


@pytest.mark.parametrize("door", DISTANCES.values(), ids=DISTANCES)
@SOME
@given(data=some_data(), seed=st.integers(0, 2**32 - 1), offset=offsets())
def test_distances_keep_the_laws(door: Callable[[Data], Found], data: Data, seed: int, offset: np.ndarray) -> None:
    found = keeps_the_laws(door, data, seed)
    same(found, door(data.moved(offset)), "an offset")


@pytest.mark.parametrize("door", PRODUCTS.values(), ids=PRODUCTS)
@SOME
@given(data=some_data(), seed=st.integers(0, 2**32 - 1))
def test_products_keep_the_laws(door: Callable[[Data], Found], data: Data, seed: int) -> None:
    keeps_the_laws(door, data, seed)


CODES: dict[str, Callable[[], object]] = {
    "wide subspaces": partial(nk.ProductQuantizer, 4, 32, rotation=None),
    "rotated": partial(nk.ProductQuantizer, 4, 32),
    "4-bit codes": partial(nk.ProductQuantizer, 8, 16),
    "lists": partial(nk.ProductQuantizer, 8, 32, n_lists=40),
    "4-bit codes in lists": partial(nk.ProductQuantizer, 8, 16, n_lists=40),
    "sums": partial(nk.quantization.ResidualQuantizer, 3, 32),
    "sums in lists": partial(nk.quantization.ResidualQuantizer, 3, 32, n_lists=40),
}


@pytest.mark.parametrize("codes", CODES.values(), ids=CODES)
def test_an_offset_of_all_columns_costs_codes_nothing(codes: Callable[..., object], tmp_path, rng) -> None:
    """In a batch, alone, and loaded; random choices of a fit may differ."""
    rows = rng.normal(size=(1_200 + BATCH, D)) * np.geomspace(1, 0.05, D)
    recalls = []
    for offset in (0, 3_000):
        X, Q = np.split((rows + offset).astype(np.float32), [1_200])
        index = nk.Index.build(X, codes(max_iter=3, random_state=0), n_probe=4 if "n_lists" in codes.keywords else None)
        index.save(tmp_path / f"{offset}")
        found = [index.search(Q, 10)[1], nk.Index.load(tmp_path / f"{offset}").search(Q, 10)[1]]
        alone = np.vstack([index.search(query[None], 10)[1] for query in Q[:40]])
        assert np.mean([len(set(one) & set(other)) / 10 for one, other in zip(alone, found[0], strict=False)]) > 0.98
        recalls += [nk.metrics.knn_recall(ids, X, Q) for ids in found]
    assert min(recalls) > 0.8 * max(recalls) > 0.08, recalls
