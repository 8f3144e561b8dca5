"""The best code at a size: never below the other candidates, in the time given."""

from functools import partial

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization.best import _SHARE, BestCode, Budget, Candidate, Screening, Short, best, candidates
from nearkin.quantization.sized import WithNorms
from tests.covering import each
from tests.refusals import each_refused

pytestmark = pytest.mark.usefixtures("few_rounds")  # what all steps give, `test_order.py` tests


def test_the_winner_is_fitted_and_leads_the_table(vectors):
    heard = []
    found = best(vectors[0][:500], 4, random_state=0, callback=lambda step, record: heard.append(record["candidate"]))
    names = [record["candidate"] for record in found.trials]
    assert sorted(heard) == sorted(names)
    assert {"axes", "product", "none", "residual"} <= set(names)
    others = [record["value"] for record in found.trials[1:]]
    assert others == sorted(others, reverse=True)
    assert found.trials[0]["won"]
    assert others[-1] < found.trials[0]["value"] > others[0] - 0.05
    assert all(record["bytes"] == 4 for record in found.trials)
    assert found.quantizer.encode(vectors[1]).shape == (1000, 4)
    index = nk.Index.build(vectors[1], found.quantizer)
    assert index.search(vectors[1][:5], 3)[1].shape == (5, 3)


def test_no_candidate_begins_when_time_is_up(vectors):
    found = best(vectors[0][:600], 2, seconds=0, random_state=0)
    assert [record["candidate"] for record in found.trials] == ["product"]


CODE = Candidate("a", 4, object)


def test_a_full_fit_learns_from_as_many_rows_as_the_seconds_allow():
    each = CODE.seconds(1, 0, 64)
    rows = [Budget(n * each, 1000, 0, 64).rows(CODE, 10_000) for n in (20_000.5, 5_000.5, 10)]
    assert rows == [10_000, 5_000, 1_000]
    encoded = Budget(6_000.5 * each + CODE.seconds(0, 50_000, 64), 1000, 50_000, 64)
    assert encoded.rows(CODE, 10_000) == 6_000


def test_codes_that_learn_or_encode_too_slowly_are_left_out():
    """The seconds are those beyond what the first code takes, if rows are encoded."""
    slow, n = CODE._replace(chain=8), 1000
    short, full = (share * CODE.seconds(n, 0, 64) for share in (_SHARE, 1))
    budget = Budget(0.0, n, 0, 64)
    assert budget.allows(CODE, n, first=True)
    assert not budget.allows(CODE, n, first=False)
    for extra, allowed in ((0.9, False), (1.1, True)):
        assert Budget(extra * (short + full), n, 0, 64).allows(CODE, n, first=False) == allowed
        budget = Budget(extra * (slow.seconds(1.5 * n, 10**6, 64) - CODE.seconds(n, 10**6, 64)), n, 10**6, 64)
        assert budget.allows(CODE, n, first=True)
        assert budget.allows(slow, n, first=False) == allowed


def test_codes_are_judged_by_rows_that_they_learned_from_where_these_are_all(rng):
    X = rng.normal(size=(1000, 16)).astype(np.float32)  # not far above the 768 centroids
    own, others = (
        {r["candidate"]: r["value"] for r in best(X, 3, n_vectors=n, random_state=0).trials} for n in (1000, 10**6)
    )
    assert all(own[name] > others[name] + 0.02 for name in own.keys() & others.keys() if name[:4] != "axes")
    assert own["residual"] - own["product"] > others["residual"] - others["product"] + 0.01


def test_given_queries_judge(vectors):
    X, Q = vectors[0][:900], vectors[1][:100]
    values = {best(X, 2, asked, seconds=0, random_state=0).trials[0]["value"] for asked in (None, Q, Q + 1)}
    assert len(values) == 3


def test_bad_arguments(vectors):
    X = vectors[0][:900]
    each_refused(
        [
            (lambda: best(X, 0), ValueError, "n_bytes"),
            (lambda: best(X, 2.5), TypeError, "n_bytes"),
            (lambda: best(X, 2, None, -1), ValueError, "seconds"),
            (lambda: best(X, 4, n_vectors=899), ValueError, "n_vectors is 899"),
            (lambda: best(X, 2, X[:, :31]), ValueError, "queries has 31 columns"),
            (lambda: best(X, 4, metric="hamming"), ValueError, "metric is 'hamming'"),
        ]
    )


def test_few_rows_and_many_bytes(rng):
    few = rng.normal(size=(120, 8)).astype(np.float32)
    assert best(few, 2, random_state=0).quantizer.encode(few).shape[0] == 120
    assert best(few, 16, seconds=0, random_state=0).trials[0]["candidate"] == "float16"


def test_best_code_fits_to_a_quantizer(vectors):
    made = BestCode(2, seconds=0, random_state=0)
    assert "n_bytes=2" in repr(made)
    assert isinstance(made.fit(vectors[0][:800]), nk.ProductQuantizer)


def test_codes_with_norms_are_judged_at_them(vectors):
    """Plain scores would leave the norm out."""
    rows = vectors[0][:800] * np.linspace(0.2, 2, 800, dtype=np.float32)[:, None]
    screening = Screening.of(rows, None, 10**6, "l2", np.random.default_rng(0))
    made = WithNorms(nk.quantization.AxisQuantizer(8))
    short = screening.run(Candidate("axes-norms", 1, lambda: made))
    index = nk.Index.build(screening.held.rows, made.quantizer, norms=made.norms_)
    found = screening.held.found(lambda some, depth: index.search(screening.held.queries[some], depth))
    assert (short.values.mean(), short.n_bytes) == (pytest.approx(found.mean(), abs=1e-3), 9)


def test_rows_that_tie_are_not_lost() -> None:
    """Two columns of three values fit a centroid each: lossless, and once behind a code that kept .90 by row number."""
    X = np.random.default_rng(0).integers(0, 3, size=(300, 8)).astype(np.float32)
    found = best(X, 4, random_state=0)
    assert {record["candidate"]: record["value"] for record in found.trials}["none"] == 1
    np.testing.assert_allclose(found.quantizer.decode(found.quantizer.encode(X)), X, atol=1e-5)


@each(
    ("metric", "n_rows", "expected"),
    [("l2", None, ("l2", True)), ("l2", 10**6, ("l2", False)), ("ip", None, ("ip", False)), ("cosine", 900, ("ip", 1))],
)
def test_codes_are_learned_for_what_searches_them(metric, n_rows, expected, monkeypatch, vectors):
    listed = partial(candidates, 2, 32, 300, metric=metric, seed=0)
    monkeypatch.setitem(best.__globals__, "candidates", lambda *args, **settings: listed()[-1:])
    found = best(vectors[0][:900], 2, metric=metric, n_vectors=n_rows, random_state=0).quantizer
    assert (found.metric, found.known) == expected


def test_codes_for_cosine_are_learned_from_rows_of_length_one(vectors):
    X = vectors[0][:900]
    found = best(X, 4, metric="cosine", seconds=0, random_state=0)
    assert found.quantizer.normalized_
    assert len(nk.Index.build(X, found.quantizer, metric="cosine")) == 900


def test_rows_that_judge_are_mixed_as_those_of_the_index(rng):
    X = np.arange(2000, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
    for n_rows, known in ((2000, 1.0), (4000, 0.5), (200_000, 0.01), (10**9, 0.0)):
        screening = Screening.of(X, None, n_rows, "l2", rng)
        parts = screening.train, screening.held.rows, screening.held.queries
        learned, judged, asked = (set(part[:, 0].tolist()) for part in parts)
        assert not asked & (learned | judged), known
        assert len(learned & judged) == pytest.approx(known * len(judged), abs=1)
        assert len(learned) >= 1100, known
        assert len(judged) >= 370, known


@each("metric", ["l2", "ip", "cosine"])
def test_recall_is_that_of_the_index(rng, metric):
    """Rows of unlike lengths and queries unlike the rows: neighbours by distance are others than by inner product."""
    X = (rng.normal(size=(800, 16)) * rng.gamma(2, size=(800, 1))).astype(np.float32)
    if metric == "cosine":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    Q = rng.normal(size=(60, 16)) + 1
    screening = Screening.of(X, Q, 800, metric, rng)
    quantizer = nk.ProductQuantizer(4, 32, random_state=0)
    recall = screening.run(Candidate("product", 1, lambda: quantizer)).values.mean()
    index = nk.Index.build(screening.held.rows, quantizer, metric=metric)
    found = index.search(screening.held.queries, 10)[1]
    rows, asked = screening.held.rows, screening.held.queries
    kept = nk.metrics.knn_recall(found, rows, asked, "l2" if metric == "l2" else "ip")
    assert recall == pytest.approx(kept, abs=1e-2)  # of equal codes the index finds the first
    assert bool(recall > nk.metrics.knn_recall(found, rows, asked) + 0.1) is (metric == "ip")


def test_sums_fill_the_bytes_and_the_cheapest_come_first():
    for n_bytes, names in (
        (1, []),
        (4, ["residual 4"]),
        (8, ["product-residual 4", "residual 8"]),
        (16, ["product-residual 4", "product-residual-long 8", "residual 16"]),
        (31, ["product-residual 5", "product-residual-long 10", "residual 31"]),
        (75, ["product-residual 3", "product-residual-long 5"]),
        (49, ["product-residual 4", "product-residual-long 7"]),
    ):
        listed = candidates(n_bytes, 128, 4096, seed=0)
        seen = [f"{one.name} {one.chain}" for one in listed]
        assert [name for name in seen if not name.startswith(("axes", "product ", "none", "float", "int"))] == names
        assert [one.chain for one in listed] == sorted(one.chain for one in listed), n_bytes
        assert all("norms" not in name for name in seen), n_bytes
        with_norms = candidates(n_bytes, 128, 4096, norms=True, seed=0)
        assert any("-norms" in name for name, *_ in with_norms) == (n_bytes > 2), n_bytes


def screened(monkeypatch, recalls: dict[str, float]) -> None:
    """Replace the fits by recalls for each of the queries."""

    def run(screening, candidate):
        return Short(np.full(len(screening.held.queries), recalls.get(candidate.name, 0.0)), 4, nk.ProductQuantizer())

    monkeypatch.setattr(Screening, "run", run)
    monkeypatch.setattr(Screening, "fitted", lambda screening, quantizer, X: (quantizer, None))


def test_a_code_wins_only_if_its_full_fit_ends_in_time(monkeypatch, vectors):
    screened(monkeypatch, {"residual": 0.9, "product-residual": 0.7, "product": 0.5})
    X = vectors[0][:800]
    listed = {one.name: one for one in candidates(8, X.shape[1], len(X))}
    for name in ("residual", "product-residual", "product"):
        seconds = 3 * listed[name].seconds(700, 0, X.shape[1])
        assert best(X, 8, seconds=seconds, random_state=0).trials[0]["candidate"] == name


def test_of_level_codes_the_one_of_fewest_centroids_wins(monkeypatch, vectors):
    for lead, name in ((0.0, "product"), (0.1, "residual")):
        screened(monkeypatch, {"residual": 0.6 + lead, "product": 0.6})
        assert best(vectors[0][:800], 4, random_state=0).trials[0]["candidate"] == name


def test_codes_with_norms_are_tried_where_rows_have_different_ones(vectors):
    X = vectors[0][:400]
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for rows, settings, expected in (
        (X, {"n_vectors": 10**6}, True),
        (X, {}, False),  # codes are trained for known rows by FAISS's own scores
        (unit, {"n_vectors": 10**6}, False),
        (X, {"n_vectors": 10**6, "metric": "cosine"}, False),
        (X, {"n_vectors": 10**6, "metric": "ip"}, True),
    ):
        found = best(rows, 3, random_state=0, **settings)
        names = [record["candidate"] for record in found.trials]
        assert any(name.endswith("-norms") for name in names) == expected, (names, settings)
        assert all(record["bytes"] <= 3 for record in found.trials)
        index = nk.Index.build(rows, found.quantizer, metric=settings.get("metric", "l2"), norms=found.norms)
        assert index.bytes_per_vector <= 3
