"""A search among allowed rows in inverted lists, without seen rows, what cannot be selected, and `upsert`.

Sets of rows in every form, and `upsert`, on every kind of index: `tests/faults/sequences.py`.
"""

import faiss
import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization import ResidualQuantizer
from tests.covering import each

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
        part = nk.Index.empty(8, quantizer, metric, n_probe=20).add(X[allowed], allowed + 7)
        centres = faiss.extract_index_ivf(part.faiss_index)
        turned = Q if centres is part.faiss_index else faiss.downcast_index(part.faiss_index).chain.at(0).apply(Q)
        wanted = 400 * 2 // 20
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


def test_what_cannot_be_selected() -> None:
    """Which argument, which query, what it was."""
    index, both = nk.Index.build(X), ("among", "exclude")
    cases = [
        *((np.ones(399, bool), r"{} is a mask of shape \(399,\).*\(400,\)", of) for of in both),
        *(([3, 400, 401], "{} .*2 ids .* 400$", of) for of in both),
        *((["3"], "{} .*1 id ", of) for of in both),
        *(([[1]] * 19, "{} has 19 sets .* 20 queries", of) for of in both),
        *((np.ones((20, 399), bool), r"query 0: {} .*\(399,\)", of) for of in both),
        *((none, "{} allows no vector", "among") for none in ([], np.zeros(400, bool))),
        ([[1], [], *[[2]] * 18], "query 1: {} allows no vector", "among"),
    ]
    for given, match, of in cases:
        with pytest.raises(ValueError, match=match.format(of)):
            index.search(Q, 3, **{of: given})
