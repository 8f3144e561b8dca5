"""Rows that come and go: removed, replaced, added by several threads, and changes that are broken off."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import cycle, product, repeat

import faiss
import numpy as np
import pytest

from nearkin import Index, Interactions, ProductQuantizer, RandomHyperplanes
from nearkin.index import faiss_index
from nearkin.linalg.norms import Norms
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 8)).astype(np.float32)
NEW = rng.normal(size=(70, 8)).astype(np.float32)
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)

KINDS = {
    "exact": (None, "l2"),
    "pq": (ProductQuantizer(4, 32, max_iter=2, random_state=0), "l2"),
    "scalar": (ScalarQuantizer(8), "ip"),
    "fast scan": (ProductQuantizer(4, 16, max_iter=2, random_state=0), "l2"),
    "lists": (ProductQuantizer(4, 32, n_lists=5, max_iter=2, random_state=0), "ip"),
    "fast-scan lists": (ProductQuantizer(4, 16, n_lists=5, max_iter=2, random_state=0), "l2"),
    "sums": (ResidualQuantizer(3, 32, max_iter=2, random_state=0), "l2"),
    "bits": (RandomHyperplanes(24, random_state=0), "hamming"),
}
NAMES = {
    "counted": lambda n: None,
    "integers": lambda n: 1000 - 3 * np.arange(n),
    "text": lambda n: np.array([f"row {i}" for i in range(n)]),
}


# for what the kind of codes has hardly to do with: one for each way that FAISS stores them
some_kinds = pytest.mark.parametrize("kind", ["exact", "fast-scan lists", "sums", "bits"], indirect=True)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> tuple[object, str, Norms | None]:
    return fitted(request.param)


@cache
def fitted(name: str) -> tuple[object, str, Norms | None]:
    quantizer, metric = KINDS[name]
    norms = Norms.learned(X) if name.startswith("norms") else None
    return None if quantizer is None else quantizer.fit(X), metric, norms


def build(rows: np.ndarray, kind: tuple[object, str, Norms | None], ids: object, **options: object) -> Index:
    quantizer, metric, norms = kind
    return Index.build(rows, quantizer, ids, metric, n_probe=5, norms=norms, **options)


def all_hits(index: Index, Q: np.ndarray = X[:4], **options: object) -> list[dict[object, float]]:
    """Every row with its score, for each query: equal scores may stand in any order."""
    scores, ids = index.search(Q, len(index), **options)
    return [dict(zip(found.tolist(), row.tolist(), strict=True)) for found, row in zip(ids, scores, strict=True)]


@pytest.mark.parametrize("kind", ["fast scan", "fast-scan lists"], indirect=True)
def test_joined_parts_hold_no_memory_that_nobody_wrote(kind) -> None:
    """The unused places of the last block differed from run to run, and went into the file."""
    whole = build(X[:100], kind, None)
    parts = [Index.empty(8, *kind[:2]).add(X[rows]) for rows in (slice(0, 41), slice(41, 100))]
    joined = parts[0].merge(parts[1])
    if whole.n_lists is None:
        np.testing.assert_array_equal(*(faiss.serialize_index(index.faiss_index) for index in (whole, joined)))
    expected = build(np.concatenate([X[:100], NEW]), kind, None)
    assert all_hits(joined.add(NEW)) == all_hits(expected)


@pytest.mark.parametrize("kind", ["fast scan", "fast-scan lists"], indirect=True)
def test_plain_faiss_adds_rows_where_others_were_removed(kind) -> None:
    """FAISS joins new codes to the bits that its `remove_ids` leaves behind the last row."""
    index, new = build(X[:100], kind, None).remove(np.arange(0, 100, 3)), build(NEW, kind, None)
    n = len(index)
    index.faiss_index.add(NEW)
    scores, ids = index.faiss_index.search(X[:8], n + len(NEW))
    for row, found, theirs, numbers in zip(scores, ids, *new.faiss_index.search(X[:8], len(NEW)), strict=True):
        expected = dict(zip(numbers.tolist(), theirs.tolist(), strict=True))
        assert {i - n: score for i, score in zip(found.tolist(), row.tolist(), strict=True) if i >= n} == expected


class StoppedError(Exception):
    pass


def state(index: Index) -> tuple[object, ...]:
    kept = None if index.kept is None else index.kept.rows(np.arange(len(index)))
    ids = None if index.ids is None else index.ids.tolist()
    return len(index), ids, None if kept is None else kept.tolist(), all_hits(index, X[:3])


# the vectors come last, when FAISS has the codes; others than product codes FAISS adds in one step
STOPS = [
    *zip(KINDS, repeat("vectors"), cycle(["add", "update"]), cycle([StoppedError, StoppedError, KeyboardInterrupt])),
    *(("pq", "codes", change, StoppedError) for change in ("add", "update")),
    *((name, "callback", "update", KeyboardInterrupt) for name in ("exact", "fast-scan lists")),
]


@pytest.mark.parametrize(("kind", "where", "change", "error"), STOPS, indirect=["kind"])
def test_a_change_that_raises_changes_nothing(kind, change: str, where: str, error, monkeypatch) -> None:
    """`add` left the rows of the chunks before, without their ids and vectors."""

    def fails(*args: object) -> None:
        raise error

    index = build(X, kind, NAMES["text"](300), keep_vectors=True)
    before = state(index)
    options = {"callback": fails} if where == "callback" else {}
    if where == "vectors":
        monkeypatch.setattr("nearkin.index.kept_vectors.KeptVectors.with_rows", fails)
    if where == "codes":
        monkeypatch.setattr(ProductQuantizer, "faiss_codes", fails)
    ids = [f"new {i}" if change == "add" else f"row {i}" for i in range(70)]
    with pytest.raises(error):
        (index.add if change == "add" else index.update)(*((NEW, ids) if change == "add" else (ids, NEW)), **options)
    assert state(index) == before
    monkeypatch.undo()
    index.add(NEW, [f"new {i}" for i in range(70)])
    assert len(index) == len(index.ids) == len(index.kept) == 370


def test_ctrl_c_in_the_middle_of_the_step_comes_after_it(monkeypatch) -> None:
    def interrupted(*args: object) -> None:
        signal.raise_signal(signal.SIGINT)
        plain(*args)

    plain = faiss_index.remove
    monkeypatch.setattr("nearkin.index.faiss_index.remove", interrupted)
    index = Index.build(X, ids=NAMES["text"](300), keep_vectors=True)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a run in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            index.remove(["row 7"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(index) == len(index.ids) == len(index.kept) == 299
    assert "row 7" not in index.ids


def in_threads(*jobs: Callable[[], object]) -> None:
    """Run them side by side; the first error is raised."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        for running in [pool.submit(job) for job in jobs]:
            running.result(60)


@some_kinds
def test_three_threads_add_and_no_row_or_id_is_lost(kind) -> None:
    """14,000 rows and 7,800 ids came of it."""
    index = build(X[:1], kind, [0], keep_vectors=True)

    def adding(part: int) -> None:
        for rows in np.split(np.arange(1 + 90 * part, 91 + 90 * part), 9):
            index.add(X[rows], rows)

    in_threads(*(partial(adding, part) for part in range(3)))
    assert np.sort(index.ids).tolist() == [*range(271)]
    np.testing.assert_array_equal(index.kept.rows(np.arange(271)), X[index.ids])


@some_kinds
def test_a_search_sees_the_index_before_or_after_a_change(kind) -> None:
    index = build(X, kind, np.arange(300), keep_vectors=True)
    exact = Index.build(X, metric=kind[1] if kind[1] != "hamming" else "l2")
    first = exact.search(X, 1)[1].ravel()
    done = threading.Event()

    def changing() -> None:
        try:
            for i in range(3):
                index.add(NEW, np.arange(70) + 1000 * (i + 1))
                index.update(np.arange(70) + 1000 * (i + 1), 100 + NEW)
                index.remove(np.arange(70) + 1000 * (i + 1))
        finally:
            done.set()

    def searching() -> None:
        while not done.is_set():
            sizes = index.search(X, 400)[0].shape[1]
            assert sizes in (300, 370)
            if kind[1] != "ip":
                found = index.search(X, 1, oversample=100)[1].ravel()
                assert ((found == first) | (found >= 1000)).all()

    in_threads(changing, searching, searching)
    assert all_hits(index) == all_hits(build(X, kind, np.arange(300)))


def test_a_search_may_not_change_its_own_index() -> None:
    index = Index.build(X)
    with pytest.raises(RuntimeError, match="changed inside a callback of its search"):
        index.search(X, callback=lambda done, record: index.add(X))
    assert len(index.add(X[:1])) == 301  # and the lock is free again
    index.add(NEW, callback=lambda done, record: index.search(X))


@pytest.mark.parametrize("names", NAMES)
def test_an_emptied_index_takes_given_ids_and_counted_ones(names: str) -> None:
    """An index that had counted its rows ignored the ids."""
    index = Index.build(X, ids=NAMES[names](300))
    index.remove(index.row_ids).add(NEW)
    assert (index.row_ids.min() == 300) == (names == "counted")
    index.remove(index.row_ids).add(NEW, NAMES["text"](70))
    assert index.ids.tolist() == NAMES["text"](70).tolist()


def test_pairs_and_indexes_take_the_same_ids() -> None:
    class Name(str):
        __slots__ = ()

    for ids, kept in (
        ([np.int32(4), 5, np.uint8(6)], [4, 5, 6]),
        (np.array([np.int64(4), 5, 6], object), [4, 5, 6]),
        (np.array([4, 5, 6], np.uint64), [4, 5, 6]),
        ([Name("a"), np.str_("b"), "c"], ["a", "b", "c"]),
        (np.array(["a", "b", "c"], np.dtypes.StringDType()), ["a", "b", "c"]),
        (dict.fromkeys("abc").keys(), ["a", "b", "c"]),
    ):
        assert Interactions.from_pairs(ids, [0, 1, 2]).left_ids.tolist() == kept
        assert Index.build(X[:3], ids=ids).ids.tolist() == kept


def test_sets_of_ids_stand_where_order_means_nothing() -> None:
    index = Index.build(X[:4])
    assert index.search(X[:2], 1, among={2})[1].tolist() == [[2], [2]]
    assert set(index.search(X[:2], 2, exclude=[{0, 1}, set()])[1][0].tolist()) == {2, 3}
    assert len(index.remove({0, 3})) == 2
    for name in ("among", "exclude"):  # masks are bool; one of 0 and 1 was asked about, in some calls
        with pytest.raises(ValueError, match=r"2 ids occur more than once, the first is 1.*mask"):
            index.search(X[:1], 1, **{name: np.array([2, 1, 1, 2])})
    with pytest.raises(ValueError, match="shape"):
        Index.build(X[:2], ids={1, 2})


FOUR_BITS = {
    "product": ProductQuantizer(4, 16, max_iter=2, random_state=0),
    "product lists": ProductQuantizer(4, 16, n_lists=3, max_iter=2, random_state=0),
    "residual": ResidualQuantizer(4, 16, max_iter=2, random_state=0),
    "residual without norms": ResidualQuantizer(4, 16, max_iter=2, random_state=0),
    "product residual lists": ProductResidualQuantizer(2, 2, 16, n_lists=3, max_iter=2, random_state=0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FOUR_BITS)
def test_four_bit_codes_find_all_rows_and_equal_ones(name: str) -> None:
    """Of equal rows all scores were NaN or -inf, and by inner products the farthest of k = n rows had id -1."""
    for rows, metric in product((X, np.tile(X[:1], (300, 1))), ("l2", "ip")):
        index = Index.build(rows, FOUR_BITS[name], metric=metric, n_probe=3)
        scores, ids = index.search(X[:30], 300)
        np.testing.assert_array_equal(np.sort(ids, axis=1), np.tile(np.arange(300), (30, 1)))
        assert np.isfinite(scores).all()
        assert (np.diff(scores) * (1 if metric == "l2" else -1) >= 0).all()
        if rows is not X:
            np.testing.assert_allclose(scores, scores[:, :1].repeat(300, axis=1), rtol=1e-6)


def test_merging_both_ways_at_once_ends() -> None:
    one, other = Index.build(X), Index.build(NEW)
    in_threads(*[lambda: one.merge(other), lambda: other.merge(one)] * 20)
    assert len(one) + len(other) == 370


def test_the_direct_map_that_an_export_made_does_not_stand_in_the_way() -> None:
    index = build(X, fitted("lists"), None)
    faiss.downcast_index(faiss.downcast_index(index.faiss_index).index).make_direct_map()
    assert len(index.remove([4]).add(NEW).update([7], X[:1])) == 369


def test_rows_of_another_type_are_refused() -> None:
    """Unit vectors, and the same as int8: every search would have found the old rows alone."""
    quantizer = ProductQuantizer(4, 16, max_iter=2, random_state=0).fit(UNIT)
    for change, ids in (("add", [300, 301, 302]), ("update", [1, 2, 3]), ("upsert", [1, 2, 3])):
        index = Index.build(UNIT, quantizer, ids=np.arange(300))
        before = index.search(UNIT[:20], 5)
        with pytest.raises(ValueError, match="and all rows of the index have 1; these are vectors of another type"):
            getattr(index, change)(X=(UNIT[:3] * 127).astype(np.int8), ids=ids)
        for one, other in zip(before, index.search(UNIT[:20], 5), strict=True):
            np.testing.assert_array_equal(one, other)
        getattr(index, change)(X=UNIT[:3] * 3, ids=ids)
        assert index.norms is None
