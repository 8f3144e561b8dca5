"""The race at a size: never below the codes that it races, in the time given."""

import contextlib
import itertools
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization.best import (
    DEFAULTS,
    BestCode,
    Clock,
    OutOfTime,
    Race,
    _Candidate,
    _candidates,
    _Entry,
    _winner,
    best,
)
from nearkin.quantization.residual import ResidualQuantizer
from nearkin.quantization.sized import WithNorms

pytestmark = pytest.mark.usefixtures("few_rounds")  # what all steps give, `test_order.py` tests


def screen(monkeypatch: pytest.MonkeyPatch, **changed: object) -> None:
    monkeypatch.setattr(sys.modules[best.__module__], "DEFAULTS", replace(DEFAULTS, **changed))


def test_the_winner_is_fitted_and_leads_the_table(vectors):
    heard = []
    found = best(vectors[0][:500], 4, random_state=0, callback=lambda step, record: heard.append(record["name"]))
    names = [record["name"] for record in found.table]
    assert sorted(heard) == sorted(names)
    assert {"axes", "product", "product, no rotation", "residual"} <= set(names)
    others = [record["recall"] for record in found.table[1:]]
    assert others == sorted(others, reverse=True)
    assert found.table[0]["recall"] >= others[0] - DEFAULTS.level
    assert found.table[0]["recall"] > others[-1]
    assert all(record["bytes"] == 4 for record in found.table)
    assert found.quantizer.encode(vectors[1]).shape == (1000, 4)
    index = nk.Index.build(vectors[1], found.quantizer)
    assert index.search(vectors[1][:5], 3)[1].shape == (5, 3)


def test_no_candidate_begins_when_time_is_up(vectors):
    found = best(vectors[0][:600], 2, seconds=0, random_state=0)
    assert [record["name"] for record in found.table] == ["product"]


def test_the_winner_is_fitted_within_the_time_given(vectors, monkeypatch):
    """By a clock that goes on by a second whenever it is looked at, as at every round of a candidate's fit."""
    now = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(now)))

    def ticks(seconds: float | None) -> tuple[int, int]:
        began = next(now)
        found = best(vectors[0][:400], 4, seconds=seconds, random_state=0)
        return next(now) - began, len(found.table)

    (least, one), (most, all_) = ticks(0), ticks(None)
    for share in (0.3, 0.6, 0.9):
        given = least + share * (most - least)
        taken, some = ticks(given)
        assert taken < given, share
        assert one == 1 <= some <= all_


def test_a_full_fit_learns_from_as_many_rows_as_the_time_allows(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    clock = Clock(100.0, n_encoded=20_000)
    seconds = [each / DEFAULTS.growth for each in (1, 9, 11, 30, 200)]
    assert [clock.rows(1000, 10**6, each, 1.0) for each in seconds] == [64_000, 8_000, 4_000, 2_000, 1_000]
    assert [clock.rows(1000, 7_200, each, 1.0) for each in seconds] == [7_200, 7_200, 7_200, 2_000, 1_000]


def test_codes_that_encode_too_slowly_do_not_win(monkeypatch):
    """The seconds are those beyond what the first code takes, here 4 to learn and 30 to encode."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    clock, fits = Clock(20.0, n_encoded=10**6), []
    for encode_seconds in (0.03, 0.047, 0.049):
        now[0] = 0.0
        assert clock.starts()
        now[0] = 2.0
        clock.tick(1, {})
        with contextlib.suppress(OutOfTime):
            assert clock.ended(encode_seconds, wins=True) == 2
            fits.append(encode_seconds)
    assert DEFAULTS.growth == 2
    assert fits == [0.03, 0.047]


def test_codes_are_judged_by_rows_that_they_learned_from_where_these_are_all(rng):
    X = rng.normal(size=(1000, 16)).astype(np.float32)  # not far above the 768 centroids
    own, others = ({r["name"]: r["recall"] for r in best(X, 3, n_rows=n, random_state=0).table} for n in (1000, 10**6))
    assert all(own[name] > others[name] + 0.02 for name in own.keys() & others.keys() if name[:4] != "axes")
    assert own["residual"] - own["product"] > others["residual"] - others["product"] + 0.01
    with pytest.raises(ValueError, match="n_rows is 499"):
        best(X, 4, n_rows=499)


def test_given_queries_judge(vectors):
    X, Q = vectors[0][:900], vectors[1][:100]
    assert best(X, 2, Q, seconds=0, random_state=0).quantizer.trials_
    with pytest.raises(ValueError, match="queries has 31 columns"):
        best(X, 2, Q[:, :31])


@pytest.mark.parametrize(
    ("args", "error", "match"),
    [((0,), ValueError, "n_bytes"), ((2.5,), TypeError, "n_bytes"), ((2, None, -1), ValueError, "seconds")],
)
def test_bad_arguments(args, error, match, vectors):
    with pytest.raises(error, match=match):
        best(vectors[0], *args)


def test_few_rows_and_many_bytes(rng):
    few = rng.normal(size=(120, 8)).astype(np.float32)
    assert best(few, 2, random_state=0).quantizer.encode(few).shape[0] == 120
    assert best(few, 16, seconds=0, random_state=0).table[0]["name"].startswith("scalar, 16")


def test_best_code_fits_to_a_quantizer(vectors):
    made = BestCode(2, seconds=0, random_state=0)
    assert "n_bytes=2" in repr(made)
    assert isinstance(made.fit(vectors[0][:800]), nk.ProductQuantizer)


def test_codes_with_norms_are_judged_at_them(vectors):
    """Plain scores would leave the norm out."""
    rows = vectors[0][:800] * np.linspace(0.2, 2, 800, dtype=np.float32)[:, None]
    race = Race.of(rows, None, 10**6, "l2", np.random.default_rng(0))
    made = WithNorms(nk.quantization.AxisQuantizer(8))
    record = race.run("axes, norms", made)
    index = nk.Index.build(race.judge.rows, made.quantizer, norms=made.norms_)
    found = race.judge.truth.kept(index.search(race.judge.queries, 10)[1])
    assert (record["recall"], record["bytes"]) == (pytest.approx(found, abs=1e-3), 9)


def test_the_speed_of_search_is_that_of_an_index(vectors):
    """FAISS decodes sums for every query; an index takes tables, or decodes rows once a call."""
    found = best(vectors[0][:400], 4, random_state=0)
    seconds = {record["name"]: record["search_seconds"] for record in found.table}
    assert 0 <= seconds["residual"] < 50 * max(seconds["product"], 1e-3)  # 0 where the clock is coarse


def test_rows_that_tie_are_not_lost() -> None:
    """Two columns of three values fit a centroid each: lossless, and once behind a code that kept .90 by row number."""
    X = np.random.default_rng(0).integers(0, 3, size=(300, 8)).astype(np.float32)
    found = best(X, 4, random_state=0)
    assert {record["name"]: record["recall"] for record in found.table}["product, no rotation"] == 1
    np.testing.assert_allclose(found.quantizer.decode(found.quantizer.encode(X)), X, atol=1e-5)


@pytest.mark.parametrize(
    ("metric", "n_rows", "ranking"),
    [("l2", None, "known"), ("l2", 10**6, True), ("ip", None, "ip"), ("cosine", 10**6, "ip")],
)
def test_codes_are_learned_for_what_searches_them(metric, n_rows, ranking, monkeypatch, vectors):
    asked = []
    monkeypatch.setattr(
        sys.modules[best.__module__],
        "_candidates",
        lambda *args: (asked.append(args[3]), iter([_Candidate("a", 1, lambda: ResidualQuantizer(2, 16))]))[1],
    )
    best(vectors[0][:300], 2, metric=metric, n_rows=n_rows, random_state=0)
    assert asked[0]["ranking"] == ranking


def test_codes_for_cosine_are_learned_from_rows_of_length_one(vectors):
    X = vectors[0][:900]
    found = best(X, 4, metric="cosine", seconds=0, random_state=0)
    assert found.quantizer.normalized_
    assert len(nk.Index.build(X, found.quantizer, metric="cosine")) == 900
    with pytest.raises(ValueError, match="metric is 'hamming'"):
        best(X, 4, metric="hamming")


@pytest.mark.parametrize(("n_rows", "known"), [(2000, 1.0), (4000, 0.5), (200_000, 0.01), (10**9, 0.0)])
def test_rows_that_judge_are_mixed_as_those_of_the_index(rng, n_rows, known):
    X = np.arange(2000, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
    race = Race.of(X, None, n_rows, "l2", rng)
    learned, judged, asked = (set(part[:, 0].tolist()) for part in (race.train, race.judge.rows, race.judge.queries))
    assert not asked & (learned | judged)
    assert len(learned & judged) == pytest.approx(known * len(judged), abs=1)
    assert len(learned) >= 1300
    assert len(judged) >= 450


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
def test_recall_is_that_of_the_index(rng, metric):
    """Rows of unlike lengths and queries unlike the rows: neighbours by distance are others than by inner product."""
    X = (rng.normal(size=(800, 16)) * rng.gamma(2, size=(800, 1))).astype(np.float32)
    if metric == "cosine":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    Q = rng.normal(size=(60, 16)) + 1
    race = Race.of(X, Q, 800, metric, rng)
    quantizer = nk.ProductQuantizer(4, 32, random_state=0)
    record = race.run("product", quantizer)
    index = nk.Index.build(race.judge.rows, quantizer, metric=metric)
    found = index.search(race.judge.queries, 10)[1]
    kept = nk.metrics.neighbours_kept(found, race.judge.rows, race.judge.queries, "l2" if metric == "l2" else "ip")
    assert record["recall"] == pytest.approx(kept, abs=1e-9)
    by_distance = nk.metrics.neighbours_kept(found, race.judge.rows, race.judge.queries)
    assert (record["recall"] > by_distance + 0.1) is (metric == "ip")


@pytest.mark.parametrize(
    ("n_bytes", "lead", "names"),
    [
        (8, "residual", ["residual"]),
        (8, "product", ["residual", "2 x 4"]),
        (31, "6 x 5", ["6 x 5", "3 x 10"]),
        (31, "3 x 10", ["6 x 5", "3 x 10", "residual"]),
        (20, "2 x 10", ["5 x 4", "2 x 10", "residual"]),
        (75, "15 x 5", ["25 x 3", "15 x 5"]),
        (75, "25 x 3", ["25 x 3", "15 x 5"]),
        (64, "16 x 4", ["16 x 4", "8 x 8"]),
        (49, "7 x 7", ["12 x 4", "7 x 7"]),
        (97, "product", ["24 x 4", "12 x 8"]),
    ],
)
def test_short_sums_run_only_where_long_ones_do_not_pay(n_bytes, lead, names):
    kept: dict[str, float] = {}
    seen = []
    for name, _, _ in _candidates(n_bytes, 128, 4096, {"random_state": 0}, kept):
        kept[name] = 1.0 if name.endswith(lead) else 0.5
        seen.append(name.removeprefix("product residual, "))
    assert [name for name in seen if not name.startswith(("axes", "product", "scalar"))] == names


def test_the_longest_of_the_sums_that_are_level_wins():
    """SIFT in 8 bytes: after short fits 2 x 4 and residual are level; of other rows the residual code keeps more."""
    kept = {("2 x 4", 4): 0.653, ("residual", 8): 0.646, ("1 x 16", 16): 0.62}
    found = [_Entry({"recall": recall}, _Candidate(*key, lambda: None)) for key, recall in kept.items()]
    assert _winner(found).candidate.name == "residual"


@pytest.mark.parametrize(("rows", "name"), [(800, "residual"), (799, "product")])
def test_a_sum_that_is_level_needs_time_for_more_rows(rows, name, monkeypatch, vectors):
    def run(race, name, quantizer, tick):
        return {"name": name, "recall": 0.5 if name == "residual" else 0.495, "encode_seconds": 0.0}

    monkeypatch.setattr(Race, "run", run)
    monkeypatch.setattr(Race, "fitted", lambda race, quantizer, X: (quantizer, None))
    monkeypatch.setattr(Clock, "rows", lambda clock, *given: rows)
    assert best(vectors[0][:800], 4, seconds=60, random_state=0).table[0]["name"] == name


@pytest.mark.parametrize(("cost", "name"), [(10.0, "product residual, 2 x 4"), (2.0, "residual")])
def test_codes_for_known_rows_win_only_if_all_can_be_learned_from(cost, name, monkeypatch, rng):
    """The screening judges rows that it has learned from; a costly code lacks the time to learn from the others."""
    now = [0.0]

    def run(race, name, quantizer, tick):
        now[0] += cost if name == "residual" else 1.0
        tick(1, {})
        recall = 0.9 if name == "residual" else 0.7 if name.startswith("product residual") else 0.5
        return {"name": name, "recall": recall, "encode_seconds": 0.0}

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(Race, "run", run)
    monkeypatch.setattr(Race, "fitted", lambda race, quantizer, X: (quantizer, None))
    screen(monkeypatch, screening_rows=400, chains=(4,), cheap=4)
    X = rng.normal(size=(1_300, 16)).astype(np.float32)
    assert best(X, 8, seconds=60, random_state=0).table[0]["name"] == name


def test_the_clock_runs_where_the_first_code_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It once waited for a code that keeps something, and `seconds` held nobody back until then."""
    record = {"recall": 0.0, "encode_seconds": 0.0}
    monkeypatch.setattr(Race, "run", lambda race, name, quantizer, tick: {"name": name, **record})
    clocks, ended = [], Clock.ended
    monkeypatch.setattr(Clock, "ended", lambda clock, *args, **kw: (ended(clock, *args, **kw), clocks.append(clock))[0])
    best(np.random.default_rng(0).normal(size=(300, 8)), 2, seconds=60, random_state=0)
    assert clocks[0]._needed is not None


def test_codes_with_norms_race_where_rows_have_different_ones(vectors):
    X = vectors[0][:500]
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for rows, settings, expected in (
        (X, {"n_rows": 10**6}, True),
        (X, {}, False),  # sums are trained for known rows by FAISS's own scores
        (unit, {"n_rows": 10**6}, False),
        (X, {"n_rows": 10**6, "metric": "cosine"}, False),
        (X, {"n_rows": 10**6, "metric": "ip"}, True),
    ):
        found = best(rows, 3, random_state=0, **settings)
        names = [record["name"] for record in found.table if record["name"] != "axes, norms"]
        assert any(name.endswith(", norms") for name in names) == expected, (names, settings)
        assert all(record["bytes"] <= 3 for record in found.table)
        index = nk.Index.build(rows, found.quantizer, metric=settings.get("metric", "l2"), norms=found.norms)
        assert index.bytes_per_vector <= 3
