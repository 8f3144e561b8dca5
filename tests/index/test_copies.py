"""What a copy, a pickle, a view and new ids see while an index changes, and changes that meet in the middle."""

import copy
import pickle
import threading
from collections.abc import Callable
from itertools import product
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from nearkin import Index, Interactions, ProductQuantizer
from nearkin.quantization import ScalarQuantizer
from tests.index.test_changes import NEW, X, in_threads, state

COPIES: dict[str, Callable[[Index], Index]] = {
    "copy": copy.copy,
    "deep copy": copy.deepcopy,
    "pickle": lambda index: pickle.loads(pickle.dumps(index)),
}
TEXT = np.array([f"row {i}" for i in range(370)])


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_during_changes_is_of_one_moment(way: str) -> None:
    """Half of the pickles held ids of one moment and vectors of another."""
    index, done = Index.build(X, ids=TEXT[:300], keep_vectors=True), threading.Event()

    def changing() -> None:
        draws = np.random.default_rng(0)
        try:
            for _ in range(150):
                some = np.unique(draws.integers(0, 300, 20))
                index.remove(TEXT[some], unknown="drop").upsert(X[some[:15]], TEXT[some[:15]])
        finally:
            done.set()

    def copying() -> None:
        while not done.is_set():
            other = COPIES[way](index)
            assert len(other) == len(other.row_ids) == len(other.kept)
            np.testing.assert_array_equal(other.vectors(other.row_ids), X[[int(name[4:]) for name in other.row_ids]])
            assert (other.search(other.vectors(other.row_ids), 1)[1][:, 0] == other.row_ids).all()

    in_threads(changing, copying)


CHANGES: list[Callable[[Index], object]] = [
    lambda index: index.add(NEW[:5], TEXT[300:305] if index.ids is not None else None),
    lambda index: index.remove(index.row_ids[:1]),
    lambda index: index.recode(ScalarQuantizer(8).fit(X), X),
    lambda index: setattr(index, "ids", np.arange(300)),
    lambda index: index.update(index.row_ids[:1], X[:1]),
    lambda index: index.upsert(X[:1], index.row_ids[:1]),
    lambda index: Index.build(X).merge(index),
]


def test_a_view_is_only_searched() -> None:
    index = Index.build(X, ids=TEXT[:300], keep_vectors=True)
    view, before = index.view(TEXT[:300][::-1], X).view(vectors=X), state(index)
    for change in CHANGES:
        with pytest.raises(RuntimeError, match="a view is only searched"):
            change(view)
    assert state(index) == before
    assert view.search(X[:3], 1)[1].ravel().tolist() == [0, 1, 2]


USES: list[Callable[[Index], object]] = [
    lambda view: view.search(X[:3], 1),
    lambda view: view.search_radius(X[:3], 1.0),
    lambda view: view.similar([1], 1),
    lambda view: view.vectors([1]),
    lambda view: view.decoded(np.arange(3)),
    lambda view: view.candidates(X[:3], 1),
    lambda view: 1 in view,
    lambda view: view.view(),
    lambda view: view.save("nowhere"),
    *COPIES.values(),
]


@pytest.mark.parametrize("change", CHANGES[:4])
def test_a_view_of_an_index_that_has_changed_is_an_error(change: Callable[[Index], object]) -> None:
    """It named other vectors, or failed in NumPy."""
    index = Index.build(X, ScalarQuantizer(4).fit(X), ids=TEXT[:300], keep_vectors=True)
    views = index.view(), index.view(TEXT[:300]).view()
    change(index)
    for stale, use in product(views, USES):
        with pytest.raises(RuntimeError, match="has changed since this view"):
            use(stale)
    assert index.view(index.ids).search(X[:3], 1)[1].tolist() == index.search(X[:3], 1)[1].tolist()


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        (np.arange(5), "shape"),
        (np.arange(6).reshape(6, 1), "1-D"),
        (list("aabbcc"), "more than once"),
        (np.arange(6.0), "float64"),
        (np.ones(6, bool), "bool"),
        (np.arange(6).astype("M8[D]"), r"str\(v\)"),
        (np.array(list("abcdef"), "S"), "decode"),
        ([b"a"] * 6, "decode"),
        (np.arange(-1, 5), "-1"),
        (["", *"bcdef"], "empty"),
        (2**63 + np.arange(6).astype(np.uint64), r"str\(v\)"),
        ([2**70, *range(5)], r"str\(v\)"),
        ([1, "b", 2.5] * 2, r"str\(v\)"),
        ([True, 2, 3] * 2, r"str\(v\)"),
        (["a\0", *"bcdef"], "NUL"),
        (np.array(["\ud800", *"bcdef"], object), "surrogate"),
        (pd.Series([None, *range(5)], dtype="Int64"), "1 missing id"),
        ([UUID(int=i) for i in range(6)], r"str\(v\)"),
        (pd.MultiIndex.from_tuples([(i, i) for i in range(6)]), r"str\(v\)"),
    ],
    ids=str,
)
def test_ids_are_checked_wherever_they_come_in(ids: object, match: str) -> None:
    """`index.ids = ids` was not, and a saved folder could not be loaded."""
    ways = [
        lambda index: setattr(index, "ids", ids),
        lambda index: index.view(ids),
        lambda index: Index.build(X[:6], ids=ids),
    ]
    if match in ("NUL", "surrogate", "1 missing id", "decode"):
        ways.append(lambda index: Interactions.from_pairs(ids, range(6)))
    for before in (None, list("uvwxyz")):
        index = Index.build(X[:6], ids=before, keep_vectors=True)
        for way in ways:
            with pytest.raises((ValueError, TypeError), match=match):
                way(index)
        assert index.search(X[:6], 1)[1].ravel().tolist() == (before or list(range(6)))


def test_new_ids_replace_the_old_ones_for_good(tmp_path: Path) -> None:
    index = Index.build(X[:8]).remove([0, 1])  # which counts on from 8
    for ids in (list("abcdef"), np.arange(10, 16, dtype=np.int32), np.array(list("uvwxyz"), object), None):
        index.ids = ids
        index.save(tmp_path / "idx")
        names = list(range(6)) if ids is None else list(ids)
        for one in (index, Index.load(tmp_path / "idx")):
            assert one.search(X[2:8], 1)[1].ravel().tolist() == one.row_ids.tolist() == names
            assert names[3] in one
    assert index.add(X[:1]).row_ids[-1] == 6
    index.ids = list("abcdefg")
    given = index.ids
    with pytest.raises(ValueError, match="read-only"):
        given[0] = "b"
    index.remove(["a"])
    assert given.tolist() == list("abcdefg")


CODES = [ProductQuantizer(4, 16, max_iter=1, random_state=seed) for seed in (0, 1)]
ROWS = {name: X[i : i + 5] for i, name in enumerate(("add", "update", "upsert"))}
OUTER = {
    "add": lambda index, **how: index.add(ROWS["add"], TEXT[300:305], **how),
    "update": lambda index, **how: index.update(TEXT[10:15], ROWS["update"], **how),
    "upsert": lambda index, **how: index.upsert(ROWS["upsert"], TEXT[298:303], **how),
    "recode": lambda index, **how: index.recode(CODES[1], X, **how),
}
INNER = {
    "add": lambda index: index.add(NEW[:5], TEXT[310:315]),
    "remove": lambda index: index.remove(TEXT[20:25]),
    "update": lambda index: index.update(TEXT[12:17], NEW[5:10]),
    "upsert": lambda index: index.upsert(NEW[10:15], TEXT[297:302]),
    "recode": lambda index: index.recode(CODES[1], X),
    "ids": lambda index: setattr(index, "ids", TEXT[50:350]),
    "search": lambda index: index.search(X[:1]),
}


@pytest.mark.parametrize(("outer", "inner"), [*product(OUTER, INNER)])
def test_changes_that_meet_come_one_after_the_other_or_raise(outer: str, inner: str) -> None:
    """`recode` beside `add` left 300 vectors and 305 ids, and `add` beside `recode` codes of the other quantizer."""
    for quantizer in CODES:
        quantizer.fit(X)

    def made() -> Index:
        return Index.build(X, CODES[0], TEXT[:300], keep_vectors=True)

    def whole(index: Index) -> list[object]:
        rows = np.arange(len(index))
        return [state(index), index.decoded(rows).tolist(), index.quantizer.codebooks_.tolist()]

    alone = made()
    INNER[inner](alone)
    expected = whole(alone)
    try:
        after = whole(OUTER[outer](copy.deepcopy(alone)))
    except ValueError:
        after = None
    for other_thread in (False, True):
        index, once = made(), iter([True])

        def meeting(done: int, record: object, index=index, once=once, other_thread=other_thread) -> None:
            if next(once, False):
                in_threads(lambda: INNER[inner](index)) if other_thread else INNER[inner](index)

        try:
            OUTER[outer](index, callback=meeting)
        except (RuntimeError, ValueError):
            assert whole(index) == expected
            assert after is None or outer == "recode"
        else:
            assert whole(index) == after
