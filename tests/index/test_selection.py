"""A search among allowed rows in inverted lists, without seen rows, what cannot be selected, and `upsert`.

Sets of rows in every form, and `upsert`, on every kind of index: `tests/faults/sequences.py`.
"""

from functools import partial

import faiss
import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization import ResidualQuantizer
from tests.covering import each
from tests.refusals import each_refused

X, Q = (np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32) for seed, n in ((0, 400), (1, 20)))
LISTS = {
    "product codes": (lambda: nk.ProductQuantizer(4, 32, n_lists=20, max_iter=2, random_state=0), "l2"),
    "by inner product": (lambda: nk.ProductQuantizer(4, 32, n_lists=20, max_iter=2, random_state=0), "ip"),
    "4 bits": (lambda: nk.ProductQuantizer(4, 16, n_lists=20, max_iter=2, random_state=0), "l2"),
    "sums": (lambda: ResidualQuantizer(4, 32, n_lists=20, max_iter=2, beam_size=2, random_state=0), "l2"),
}


@each("kind", LISTS)
def test_as_many_allowed_rows_are_compared_as_the_lists_of_a_search_have(kind: str) -> None:
    """A query looks into the nearest lists of an index of the allowed rows, until these have enough rows."""
    make, metric = LISTS[kind]
    quantizer = make().fit(X)
    index = nk.Index.build(X, quantizer, metric=metric, n_probe=2)
    for allowed in (np.arange(150, 160), np.sort(np.random.default_rng(2).permutation(400)[:200]), np.arange(400)):
        part = nk.Index.empty(8, quantizer, metric, n_probe=20, fast_scan=False).add(X[allowed], allowed + 7)
        centres = faiss.extract_index_ivf(part.faiss_index)
        turned = Q if centres is part.faiss_index else faiss.downcast_index(part.faiss_index).chain.at(0).apply(Q)
        wanted = max(3 * 5 + 30 if kind == "4 bits" else 5, 400 * 2 // 20)  # candidates of a fast scan are ranked again
        expected = []
        for query in range(20):
            near = centres.quantizer.search(turned[query : query + 1], 20)[1][0].tolist()
            rows = np.cumsum([centres.invlists.list_size(number) for number in near])
            part.n_probe = min(20, 1 + int(np.searchsorted(rows, wanted)))
            expected.append(part.search(Q[query : query + 1], 5))
        for n_queries in (1, 20):
            scores, ids = index.search(Q[:n_queries], 5, among=allowed)
            np.testing.assert_allclose(scores, np.concatenate([one[0] for one in expected[:n_queries]]), atol=1e-4)
            np.testing.assert_array_equal(ids + 7, np.concatenate([one[1] for one in expected[:n_queries]]))


def test_rows_far_from_the_query_are_found_if_they_alone_are_allowed() -> None:
    """Rows of two lists, and queries near the other lists: the nearest lists have no allowed row."""
    index = nk.Index.build(X, LISTS["product codes"][0](), n_probe=1)
    lists = faiss.extract_index_ivf(index.faiss_index)
    for number in range(0, 20, 2):
        pair = [
            np.sort(faiss.rev_swig_ptr(lists.invlists.get_ids(i), lists.invlists.list_size(i)))
            for i in (number, number + 1)
        ]
        allowed = np.concatenate(pair)
        for k in (1, len(allowed)):
            ids = index.search(Q, k, among=allowed)[1]
            assert np.isin(ids, allowed).all()
            assert all(len(set(row)) == k for row in ids.tolist())


def test_what_each_user_has_seen_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of any size, one of nearly all rows among them: as a search for all rows without these."""
    index = nk.Index.build(X, LISTS["product codes"][0](), ids=[f"item {i}" for i in range(400)], n_probe=20)
    scores, every = index.search(Q, 400)
    seen = [every[i, : (i % 4) * 5].tolist() for i in range(len(Q))]
    seen[7] = index.ids[3:].tolist()
    ids = index.search(Q, 5, exclude=seen)[1]
    for found, rows, gone in zip(ids.tolist(), every.tolist(), seen, strict=True):
        assert found == [*[name for name in rows if name not in gone][:5], "", ""][:5]
    for gone in (every[0, :7], np.isin(index.ids, every[0, :7]), index.ids[:380]):
        names = index.ids[gone] if gone.dtype == bool else gone
        shared = [[name for name in rows if name not in names][:5] for rows in every.tolist()]
        assert index.search(Q, 5, exclude=gone)[1].tolist() == shared
    assert set(index.search(Q, 5, among=index.ids[:390], exclude=index.ids[:380])[1].ravel()) <= set(index.ids[380:390])
    assert (index.search(Q, 2, exclude=index.ids)[1] == "").all()
    assert (index.search(Q, 2, exclude=[])[1] == every[:, :2]).all()
    monkeypatch.setattr("nearkin.index.query._DEPTH", 2)  # some queries are sought deeper than others
    r = float(np.median(scores))
    limits, _, ids = index.search_radius(Q, r, exclude=seen)
    for i, gone in enumerate(seen):
        assert sorted(ids[limits[i] : limits[i + 1]]) == sorted(set(every[i, scores[i] < r]) - set(gone))


def test_fewer_allowed_rows_than_k_leave_places_without_an_answer() -> None:
    index = nk.Index.build(X, keep_vectors=True)
    for oversample in (None, 3):
        scores, ids = index.search(Q, 4, among=[3, 5], oversample=oversample)
        assert (np.sort(ids[:, :2]) == [3, 5]).all()
        assert (ids[:, 2:] == -1).all()
        assert np.isinf(scores[:, 2:]).all()
    bits = nk.Index.build(X, nk.ITQ(n_bits=8, random_state=0), metric="hamming")
    scores, ids = bits.search(Q, 3, among=[7])
    assert (ids == [7, -1, -1]).all()
    assert (scores[:, 1:] == np.iinfo(np.int32).max).all()
    assert (bits.search(Q, 2, among=[7], asymmetric=True)[1] == [7, -1]).all()


def test_what_cannot_be_selected() -> None:
    index, cases = (
        nk.Index.build(X),
        [
            ({"among": []}, "among allows no vector"),
            ({"among": np.zeros(400, bool)}, "among allows no vector"),
            ({"among": [[1], [], *[[2]] * 18]}, "query 1: among allows no vector"),
            *(
                ({name: given}, f"{where}{name} {message}")
                for name in ("among", "exclude")
                for given, where, message in [
                    (np.ones(399, bool), "", r"is a mask of shape \(399,\); it must be \(400,\)"),
                    ([3, 400, 401], "", "has ids: 2 ids are not in the index, the first is 400"),
                    (["3"], "", "has ids: 1 id is not in the index"),
                    ([[1]] * 19, "", "has 19 sets of vectors and there are 20 queries"),
                    (np.ones((20, 399), bool), "query 0: ", r"is a mask of shape \(399,\)"),
                ]
            ),
        ],
    )
    each_refused((partial(index.search, Q, 3, **given), ValueError, message) for given, message in cases)


def test_upsert_of_an_index_that_counts_its_rows_takes_known_ids_only() -> None:
    index = nk.Index.build(X[:10])
    index.upsert(X[20:21], [4])
    assert index.search(X[20:21], 1)[1] == 4
    with pytest.raises(ValueError, match="ids hold 10, but this index counts its vectors"):
        index.upsert(X[20:22], [4, 10])
    empty = nk.Index.empty(8).upsert(X[:2], ["x", "y"])
    assert empty.search(X[:1], 1)[1] == "x"
