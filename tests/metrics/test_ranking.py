"""Ranking metrics against their definitions one user at a time, and against ir-measures where it is installed."""

from collections.abc import Callable
from functools import partial

import faiss
import numpy as np
import pytest
import scipy.sparse as sp

from nearkin.metrics.ranking import METRICS, list_metrics, prefix_cooccurrence, ranking_metrics, recommend
from nearkin.records import Interactions
from tests.covering import each
from tests.reference.ranking import slow_metrics
from tests.refusals import each_refused


@pytest.fixture
def problem(rng: np.random.Generator) -> tuple:
    """A user who has seen all but two items, one who has seen nothing, and some without held-out items."""
    P, Q = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    seen, held = rng.random((40, 30)) < 0.3, rng.random((40, 30)) < 0.1
    seen[0] = True
    seen[0, :2], held[0, 1], seen[1] = False, True, False
    held[5:9] = False
    held &= ~seen
    return P, Q, sp.csr_matrix(seen), sp.csr_matrix(held)


def sets(matrix: sp.csr_matrix) -> list[set[int]]:
    return [set(matrix.indices[a:b].tolist()) for a, b in zip(matrix.indptr, matrix.indptr[1:], strict=False)]


@each("k", [1, 5, 30, 50])
def test_metrics_are_those_of_the_definitions(problem: tuple, k: int) -> None:
    P, Q, seen, held = problem
    wanted = slow_metrics(P @ Q.T, sets(held), sets(seen), k)
    found = ranking_metrics(P, Q, held, seen=seen, k=k)
    assert found == {name: pytest.approx(value, abs=1e-12) for name, value in wanted.items()}
    assert set(found) == {f"{name}@{k}" for name in METRICS}


def test_recommend_returns_no_seen_pair_and_fills_up(problem: tuple) -> None:
    P, Q, seen, _ = problem
    scores, numbers = recommend(P, Q, 4, seen=seen)
    assert sorted(numbers[0, :2].tolist()) == [0, 1]
    assert numbers[0, 2:].tolist() == [-1, -1]
    assert np.isneginf(scores[0, 2:]).all()
    for i, items in enumerate(sets(seen)):
        assert not items & set(numbers[i].tolist())
    one, several = recommend(P, Q, 4, seen=seen, users=[7])[1], numbers[[7]]
    np.testing.assert_array_equal(one, several)


def test_bad_arguments_are_named(problem: tuple) -> None:
    P, Q, seen, held = problem
    lists, nothing = recommend(P, Q, 30)[1], "relevant has no pair that counts"
    shape, only_fours = r"seen has shape \(40, 30\); it must be \(39, 30\)", held.multiply(np.arange(30) != 4).tocsr()
    cases: list[tuple[Callable[..., object], type[Exception], str]] = [
        (lambda: recommend(P[:39], Q, 4, seen=seen), ValueError, shape),
        (lambda: recommend(P, Q[:, :4], 3), ValueError, "right has 4 columns; it must have 5"),
        (lambda: ranking_metrics(P, Q, held, users=[6]), ValueError, nothing),
        (lambda: ranking_metrics(P, Q, seen, seen=seen), ValueError, nothing),
        (lambda: list_metrics(lists, seen, seen=seen), ValueError, nothing),
        (lambda: ranking_metrics(P, Q, only_fours, candidates=[4]), ValueError, nothing),
        (lambda: list_metrics(lists, held, candidates=[]), ValueError, "candidates is empty"),
        (lambda: ranking_metrics(P, Q, held, metrics=["map"]), ValueError, "metrics holds 'map'"),
        (lambda: ranking_metrics(P, Q, held, metrics=[]), ValueError, "metrics holds ''"),
        (lambda: ranking_metrics(P, Q, held, k=[]), ValueError, "k is empty"),
        (lambda: list_metrics([["a"]] * 40, held), TypeError, "ranked holds text"),
        (lambda: list_metrics(lists + 1, held), ValueError, "ranked holds 30; it must hold numbers of items, 0 to 29"),
    ]
    for rows, error in (([40], ValueError), ([-1], ValueError), ([0.5], TypeError), ([[0]], TypeError)):
        cases.append((partial(recommend, P, Q, 3, users=rows), error, "users h"))
        cases.append((partial(ranking_metrics, P, Q, held, users=rows), error, "users h"))
    for wrong in (["1"], [1.7], [True]):
        cases += [(partial(recommend, P, Q, 1, candidates=wrong), TypeError, "candidates has shape")]
    each_refused(cases)


def test_a_faiss_index_ranks_as_its_vectors_do(problem: tuple) -> None:
    P, Q, seen, _ = problem
    index = faiss.IndexFlatIP(Q.shape[1])
    index.add(np.ascontiguousarray(Q, dtype=np.float32))
    (scores, numbers), exact = recommend(P, index, 4, seen=seen), recommend(P, Q, 4, seen=seen)
    np.testing.assert_array_equal(numbers, exact[1])
    np.testing.assert_allclose(scores, exact[0], rtol=1e-5)
    with pytest.raises(ValueError, match="build it with metric='ip'"):
        recommend(P, faiss.IndexFlatL2(Q.shape[1]), 4)
    with pytest.raises(ValueError, match="candidates works with right as vectors"):
        recommend(P, index, 4, candidates=[1])


def test_metrics_of_lists_are_those_of_their_embeddings(problem: tuple) -> None:
    P, Q, seen, held = problem
    _, ranked = recommend(P, Q, 10, seen=seen)
    found = list_metrics(ranked, held, k=10)
    assert found == pytest.approx(ranking_metrics(P, Q, held, seen=seen, k=10))
    twice = np.repeat(ranked, 2, axis=1)  # an item counts at its first place
    assert list_metrics(twice.tolist(), held, k=20, metrics=["recall"])["recall@20"] == pytest.approx(
        found["recall@10"]
    )
    stored = sp.csr_matrix((held.toarray().ravel() * 1.0, np.tile(np.arange(30), 40), np.arange(41) * 30))
    assert list_metrics(ranked, stored, k=10) == found, "stored zeros are no pairs"
    assert recommend(P, Q, 3, users=[])[1].shape == (0, 3)


def test_metrics_of_equal_scores_are_means_over_their_orders(problem: tuple) -> None:
    """Integer scores, of which most are equal; the slow twin breaks ties by number, here in random orders of rights."""
    _, _, seen, held = problem
    rng = np.random.default_rng(2)
    P, Q = rng.integers(0, 2, (40, 2)), rng.integers(-1, 2, (30, 2))
    draws: dict[str, list[float]] = {}
    for order in (rng.permutation(30) for _ in range(100)):
        for k in (1, 5, 12):
            found = slow_metrics(P @ Q[order].T, sets(held[:, order]), sets(seen[:, order]), k)
            for name, value in found.items():
                draws.setdefault(name, []).append(value)
    found = ranking_metrics(P, Q, held, seen=seen, k=(1, 5, 12))
    for name, values in draws.items():
        error = np.std(values) / len(values) ** 0.5
        assert found[name] == pytest.approx(np.mean(values), abs=4 * error), name


def test_arguments_that_were_read_as_others() -> None:
    """A mask was the numbers 0 and 1, text became numbers, a single metric its letters."""
    Q, held = np.eye(4), sp.csr_matrix(np.eye(4))
    assert recommend(Q, Q, 1, candidates=np.array([False, False, True, True]))[1][:, 0].tolist()[2:] == [2, 3]
    assert recommend(Q, Q, 1, users=np.array([False, True, False, True]))[1].tolist() == [[1], [3]]
    for name in ("users", "candidates"):
        for call in (recommend, lambda P, R, k, **rows: ranking_metrics(P, R, held, k=k, **rows)):
            with pytest.raises(ValueError, match=f"{name}: 2 ids occur more than once.* a mask as bool"):
                call(Q, Q, 1, **{name: np.array([0, 1, 1, 0])})
    assert list_metrics([[0], [1], [2], [3]], held.toarray(), k=1, metrics="recall") == {"recall@1": 1.0}


@each("order", [1, -1])
@each(("lefts", "rights"), [("float64", "float64"), ("float32", "float64"), ("float64", "float32"), ("int64", "int64")])
def test_float64_decides_what_float32_cannot_tell_apart(lefts: str, rights: str, order: int) -> None:
    """Scores that are equal in float32, more than are searched for; items in the order of their numbers or against."""
    n = 300
    P = (np.array([[1.0, 1.0]]) if lefts == "float64" else np.array([[1, 1]])).repeat(3, axis=0).astype(lefts)
    Q = np.column_stack([np.full(n, 2**22 if rights == "float32" else 2**26), np.arange(n)[::order]])
    Q = (Q if rights == "int64" else Q / 16).astype(rights)
    best = np.argsort(-Q[:, 1], kind="stable")
    held = sp.csr_matrix((np.ones(4), (np.zeros(4, int), best[:4])), (3, n))
    assert ranking_metrics(P, Q, held, k=4, metrics=["recall", "ndcg", "mrr"]) == {
        "recall@4": 1, "ndcg@4": pytest.approx(1), "mrr@4": 1
    }  # fmt: skip
    np.testing.assert_array_equal(recommend(P, Q, 5)[1], best[:5][None].repeat(3, axis=0))
    seen = sp.csr_matrix((np.ones(2), ([0, 0], best[:2])), (3, n))
    np.testing.assert_array_equal(recommend(P, Q, 5, seen=seen, candidates=best[:6])[1][0], [*best[2:6], -1])


def test_a_pair_that_was_seen_and_is_relevant_counts_neither_way(problem: tuple) -> None:
    """A test part that shares pairs with the training part: they are struck out, and were counted as misses."""
    P, Q, seen, held = problem
    both = ((held + seen) > 0).astype(float)
    for part in (seen, seen.astype(float), sp.coo_matrix(seen)):
        assert ranking_metrics(P, Q, both, seen=part, k=5) == ranking_metrics(P, Q, held, seen=seen, k=5)
    ranked = recommend(P, Q, 30)[1]
    exact = ranking_metrics(P, Q, held, seen=seen, k=5)
    assert list_metrics(ranked, both, seen=seen, k=5) == pytest.approx(exact)
    assert list_metrics(recommend(P, Q, 30, seen=seen)[1], both, seen=seen, k=5) == pytest.approx(exact)


@each("as_mask", [False, True])
def test_candidates_alone_are_ranked_and_relevant(problem: tuple, as_mask: bool) -> None:
    """Two rankings compare if both have the same candidates."""
    P, Q, seen, held = problem
    allowed = np.array([2, 3, 5, 8, 13, 21])
    wanted = ranking_metrics(P, Q[allowed], held[:, allowed], seen=seen[:, allowed], k=(1, 4))
    asked = np.isin(np.arange(30), allowed) if as_mask else allowed[::-1]
    assert ranking_metrics(P, Q, held, seen=seen, k=(1, 4), candidates=asked) == wanted
    lists = recommend(P, Q, 30)[1]
    assert list_metrics(lists, held, seen=seen, k=(1, 4), candidates=asked) == pytest.approx(wanted)


def test_prefixes_beside_histories_are_those_of_a_count(rng):
    """Against loops over items: of five neighbours the mean over orders of equal counts, but an item without codes."""
    pairs, codes = Interactions.from_matrix(rng.random((300, 12)) < 0.3), rng.integers(0, 2, (12, 2))
    codes[11] = -1
    shared = pairs.matrix().toarray()[:, :11].astype(bool).astype(int)
    shared, same = shared.T @ shared, codes[:11, None] == codes[:11]
    tied = [shared[i] + rng.random((400, 11)) * 0.5 - 999 * (np.arange(11) == i) for i in range(11)]
    slow = [same[i, np.argsort(-tied[i])[:, :5]].cumprod(axis=2).mean((0, 1)) for i in range(11)]
    shares, chance = prefix_cooccurrence(codes, pairs, 5)
    np.testing.assert_allclose(shares, np.mean(slow, axis=0), atol=0.01)
    np.testing.assert_allclose(chance, (same.cumprod(axis=2).sum((0, 1)) - 11) / 110)
    each_refused([(lambda: prefix_cooccurrence(codes[:11], pairs), ValueError, r"codes has shape \(11, 2\)")])
