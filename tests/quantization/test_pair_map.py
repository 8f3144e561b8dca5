"""Maps of queries and rows from pairs: the closed form, what they gain, and that they never cost."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization.pair_map import PairMap, _regressed, pair_maps


@pytest.fixture(scope="module")
def turned() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, queries that are their answers through a matrix and noise, and pairs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 16)).astype(np.float32)
    answers = rng.integers(0, len(X), 400)
    Q = (X[answers] @ rng.normal(size=(16, 16)) / 4 + 0.1 * rng.normal(size=(400, 16))).astype(np.float32)
    return X, Q, np.column_stack([np.arange(400), answers])


@pytest.mark.parametrize("n_bytes", [None, 8])
def test_new_queries_find_their_answers_where_queries_are_turned(turned, n_bytes):
    X, Q, pairs = turned
    maps = PairMap(n_bytes, random_state=0).fit(X, Q[:300], pairs[:300])
    assert maps.recall_ > maps.plain_recall_ + 0.2
    quantizer = None if n_bytes is None else nk.ProductQuantizer(n_bytes, random_state=0)
    plain, mapped = nk.Index.build(X, quantizer), nk.Index.build(maps.transform(X), quantizer)
    asked, answers = Q[300:], pairs[300:, 1]
    before = (plain.search(asked, 10)[1] == answers[:, None]).any(axis=1).mean()
    after = (mapped.search(maps.transform_queries(asked), 10)[1] == answers[:, None]).any(axis=1).mean()
    assert after > before + 0.2, (before, after)


def test_one_byte_is_a_size(turned):
    X, Q, pairs = turned
    assert 0 <= PairMap(1, random_state=0).fit(X, Q, pairs).recall_ <= 1
    with pytest.raises(ValueError, match="n_bytes is 0"):
        PairMap(0).fit(X, Q, pairs)


def test_pairs_that_say_nothing_leave_vectors_as_they_are(rng):
    X = rng.normal(size=(300, 8)).astype(np.float32)
    maps = PairMap(random_state=0).fit(X, X[:100], np.column_stack([np.arange(100)] * 2))
    assert maps.recall_ == maps.plain_recall_ == 1
    assert maps.ridge_ is None
    np.testing.assert_array_equal(maps.transform(X), X)
    np.testing.assert_array_equal(maps.transform_queries(X), X)


def test_the_regression_has_no_gradient_left(rng):
    """Central differences of ||Q W - A||^2 + r ||W - I||^2 at the W returned, in float64."""
    Q, A = rng.normal(size=(50, 5)), rng.normal(size=(50, 5))
    W, ridge = _regressed(Q, A, 0.3), 0.3 * np.trace(Q.T @ Q) / 5

    def loss(V: np.ndarray) -> float:
        return float(np.square(Q @ V - A).sum() + ridge * np.square(V - np.eye(5)).sum())

    for i, j in ((0, 0), (1, 3), (4, 2)):
        step = np.zeros((5, 5))
        step[i, j] = 1e-4
        assert (loss(W + step) - loss(W - step)) / 2e-4 == pytest.approx(0, abs=1e-6 * loss(W))


def test_rows_shrink_along_what_queries_and_answers_differ_in(rng):
    A = rng.normal(size=(4000, 4)).astype(np.float32)
    Q = A + rng.normal(size=(4000, 4)) * [0.1, 0.1, 0.1, 3]
    _, M = pair_maps(Q.astype(np.float32), A, 1e-6, 0.5)
    assert np.allclose(M, M.T, atol=1e-5)
    assert M[3, 3] < 0.8 * M[:3, :3].diagonal().min()
    assert np.linalg.det(M.astype(np.float64)) == pytest.approx(1, rel=1e-4)


def test_interactions_savedpair_maps_and_a_callback(turned, tmp_path):
    X, Q, pairs = turned
    X, Q, pairs = X, Q[:60], pairs[:60]
    record = nk.Interactions.from_pairs(*pairs.T, left_ids=np.arange(60), right_ids=np.arange(len(X)))
    seen: list[int] = []
    maps = PairMap(random_state=0).fit(X, Q, record, callback=lambda step, _: seen.append(step))
    assert seen == list(range(1, len(seen) + 1))
    np.testing.assert_array_equal(maps.queries_, PairMap(random_state=0).fit(X, Q, pairs).queries_)
    maps.save(tmp_path / "maps")
    np.testing.assert_array_equal(PairMap.load(tmp_path / "maps").transform_queries(Q), maps.transform_queries(Q))


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"queries": np.ones((400, 3))}, ValueError, "queries has 3"),
        ({"pairs": np.ones((400, 2))}, ValueError, "they must be integers"),
        ({"pairs": np.full((400, 2), 1200)}, ValueError, "number 1200 of queries"),
        ({"pairs": np.array([[0, 5000]])}, ValueError, "number 5000 of X"),
        ({"pairs": np.array([[0, 5], [-3, 7]])}, ValueError, "number -3 of queries"),
        ({"pairs": np.array([[0, 1]])}, ValueError, "at least 20"),
        ({"pairs": nk.Interactions.from_pairs([1, 2], [3, 4])}, ValueError, "2 left and 2 right entities"),
        ({"n_bytes": 99}, ValueError, "n_bytes"),
        ({"n_bytes": 1.5}, TypeError, "n_bytes"),
    ],
)
def test_what_cannot_be_used(turned, change, error, match):
    X, Q, pairs = turned
    given = {"queries": Q, "pairs": pairs, "n_bytes": None} | change
    with pytest.raises(error, match=match):
        PairMap(given["n_bytes"]).fit(X, given["queries"], given["pairs"])
