"""The race at a size: never below the codes that it races, in the time given."""

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
    Race,
    _Candidate,
    _candidates,
    _Entry,
    _near,
    _screenings,
    _winner,
    best,
)
from nearkin.quantization.residual import ResidualQuantizer

pytestmark = pytest.mark.usefixtures("few_rounds")  # what all steps give, `test_order.py` tests


def screen(monkeypatch: pytest.MonkeyPatch, **changed: object) -> None:
    monkeypatch.setattr(sys.modules[best.__module__], "DEFAULTS", replace(DEFAULTS, **changed))


def test_the_winner_is_fitted_and_leads_the_table(vectors):
    heard = []
    found = best(vectors[0][:500], 4, random_state=0, callback=lambda step, record: heard.append(record["name"]))
    names = [record["name"] for record in found.table]
    assert sorted(heard) == sorted(names)
    first = [name for name in names if not name.endswith(", no rows drawn")]
    assert {
        "axes",
        "product",
        "product with length",
        "product, no rotation",
        "residual",
        "product residual, 2 x 2",
    } == set(first)
    assert len(names) == len(first) + 1
    assert [r["recall"] for r in found.table] == sorted((r["recall"] for r in found.table), reverse=True)
    assert found.table[0]["recall"] > found.table[-1]["recall"]
    assert all(record["bytes"] == 4 for record in found.table)
    assert found.quantizer.encode(vectors[1]).shape == (1000, 4)
    index = nk.Index.build(vectors[1], found.quantizer)
    assert index.search(vectors[1][:5], 3)[1].shape == (5, 3)


def test_no_candidate_begins_when_time_is_up(vectors):
    found = best(vectors[0][:600], 2, seconds=0, random_state=0)
    assert [record["name"] for record in found.table] == ["product"]


@pytest.mark.parametrize("looks", [(), (150, 300)])
def test_the_winner_is_fitted_within_the_time_given(vectors, monkeypatch, looks):
    """By a clock that goes on by a second whenever it is looked at, as at every round of a candidate's fit."""
    if looks:
        screen(monkeypatch, screening_rows=looks, screening_judged=200)
    now = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(now)))
    free = best(vectors[0][:400], 4, random_state=0)
    ticks = next(now)
    found = best(vectors[0][:400], 4, seconds=0.85 * ticks, random_state=0)
    fitting = next(now) - ticks
    assert len(free.table) == 7
    assert 1 <= len(found.table) <= 6 - (not looks)
    assert fitting < 0.85 * ticks


def test_codes_are_judged_by_rows_that_they_learned_from_where_these_are_all(rng):
    X = rng.normal(size=(500, 16)).astype(np.float32)
    own, others = ({r["name"]: r["recall"] for r in best(X, 4, n_rows=n, random_state=0).table} for n in (500, 10**6))
    assert all(own[name] > others[name] + 0.05 for name in others if name != "axes")  # which learn little of a row
    assert own["residual"] > own["product"] + 0.03
    assert others["residual"] < others["product"] + 0.03
    with pytest.raises(ValueError, match="n_rows is 499"):
        best(X, 4, n_rows=499)


def test_given_queries_judge(vectors):
    X, Q = vectors[0][:900], vectors[1][:100]
    assert best(X, 2, Q, seconds=0, random_state=0).quantizer.init_recall_
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


def test_axis_codes_are_judged_at_their_length(vectors):
    """Rows of other lengths hold a scale in the last byte; plain scores would leave it out."""
    rows = vectors[0][:800] * np.linspace(0.2, 2, 800, dtype=np.float32)[:, None]
    found = best(rows, 8, seconds=0, random_state=0)
    index = nk.Index.build(rows[100:], found.quantizer)
    exact = nk.Index.build(rows[100:]).search(rows[:100], 10)[1]
    kept = nk.metrics.recall_k_at_k(index.search(rows[:100], 10)[1], exact, 10)
    assert [record["name"] for record in found.table] == ["axes"]
    assert abs(found.table[0]["recall"] - kept) < 0.06


def test_codes_searched_from_tables_spend_a_byte_on_the_norm(vectors):
    found = best(vectors[0][:400], 4, fast_search=True, random_state=0)
    made = {record["name"]: record for record in found.table}
    assert made["residual"]["bytes"] == made["product"]["bytes"] == 4
    assert all(record["search_seconds"] >= 0 for record in found.table)  # 0 where the clock is coarse
    assert found.quantizer.encode(vectors[1]).shape == (1000, 4)


@pytest.mark.parametrize(
    ("n_bytes", "lead", "names"),
    [
        (8, "residual", ["2 x 4", "residual"]),
        (8, "2 x 4", ["2 x 4", "residual", "4 x 2"]),
        (31, "6 x 5", ["6 x 5", "3 x 10"]),
        (31, "3 x 10", ["6 x 5", "3 x 10", "2 x 15"]),
        (12, "residual", ["3 x 4", "residual"]),
        (15, "product", ["5 x 3", "3 x 5", "residual"]),
        (20, "2 x 10", ["5 x 4", "2 x 10", "residual"]),
        (75, "15 x 5", ["25 x 3", "15 x 5", "5 x 15"]),
        (75, "25 x 3", ["25 x 3", "15 x 5"]),
        (64, "8 x 8", ["16 x 4", "8 x 8", "4 x 16"]),
        (49, "7 x 7", ["12 x 4", "7 x 7", "3 x 16"]),
        (64, "16 x 4", ["16 x 4", "8 x 8", "32 x 2"]),
        (97, "product", ["24 x 4", "12 x 8", "48 x 2"]),
    ],
)
def test_short_sums_run_only_where_long_ones_do_not_pay(n_bytes, lead, names):
    kept: dict[str, float] = {}
    seen = []
    for name, _, _ in _candidates(n_bytes, 128, 8000, {"random_state": 0, "norm_bits": 0}, kept):
        kept[name] = 1.0 if name.endswith(lead) else 0.5
        seen.append(name.removeprefix("product residual, "))
    assert [name for name in seen if not name.startswith(("axes", "product", "scalar"))] == names


def test_rows_that_tie_are_not_lost() -> None:
    """Two columns of three values fit a centroid each: lossless, and once behind a code that kept .90 by row number."""
    X = np.random.default_rng(0).integers(0, 3, size=(300, 8)).astype(np.float32)
    found = best(X, 4, random_state=0)
    assert {record["name"]: record["recall"] for record in found.table}["product, no rotation"] == 1
    np.testing.assert_allclose(found.quantizer.decode(found.quantizer.encode(X)), X, atol=1e-5)


def test_the_clock_runs_where_the_first_code_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It once waited for a code that keeps something, and `seconds` held nobody back until then."""
    led, leads = [], Clock.leads
    monkeypatch.setattr(Clock, "leads", lambda clock, growth: (led.append(growth), leads(clock, growth)))
    monkeypatch.setattr(Race, "run", lambda race, name, quantizer, tick: {"name": name, "recall": 0.0})
    best(np.random.default_rng(0).normal(size=(300, 8)), 2, seconds=60, random_state=0)
    assert len(led) == 1


def test_few_rows_say_which_codes_are_looked_at_again(vectors, monkeypatch):
    """All codes learn from few rows, those near the first from twice as many, and only the winner from all."""
    screen(monkeypatch, screening_rows=(300, 600), screening_judged=300, far=0.2)
    heard: list[tuple[str, int]] = []
    found = best(
        vectors[0][:1000], 4, n_rows=10**6, random_state=0,
        callback=lambda step, record: heard.append((record["name"], record["rows"])),
    )  # fmt: skip
    few, again = ({name for name, rows in heard if rows == count} for count in (300, 600))
    assert len(heard) == len(few) + len(again)
    assert {"product", "residual", "product residual, 2 x 2"} <= few
    assert len(again) > 1
    assert again < few
    assert [record["rows"] for record in found.table] == [600] * len(again) + [300] * (len(few) - len(again))
    ahead = [record["recall"] for record in found.table[1 : len(again)]]
    assert ahead == sorted(ahead, reverse=True)
    assert found.quantizer.encode(vectors[1]).shape == (1000, 4)


def test_codes_of_the_very_rows_that_are_searched_learn_from_all(vectors, monkeypatch):
    """Word vectors, 20 bytes: by looks at few rows a code of .779 was taken, where the race takes one of .83."""
    screen(monkeypatch, screening_rows=(300, 600))
    generator = np.random.default_rng(0)
    own, others = (Race.of(vectors[0][:2000], None, n_rows, "l2", generator) for n_rows in (2000, 10**6))
    assert [len(look.race.train) for look in _screenings(own, 2000)] == [len(own.train)]
    assert [len(look.race.train) for look in _screenings(others, 2000)] == [300, 600]


@pytest.mark.parametrize(
    ("first", "again"),
    [("4 x 2", ["4 x 2", "residual", "2 x 4"]), ("2 x 4", ["2 x 4", "residual"]), ("residual", ["residual"])],
)
def test_codes_that_gain_by_more_rows_are_looked_at_from_farther_behind(first, again):
    """Of rows that were not learned from, long sums keep more the more rows they learn from."""
    lengths = {"product": 1, "4 x 2": 2, "2 x 4": 4, "residual": 8}
    kept = {name: 0.62 - 0.002 * i for i, name in enumerate(("residual", "2 x 4", "product"))} | {"4 x 2": 0.59}
    kept[first] = 0.645
    entries = [
        _Entry({"recall": kept[name]}, _Candidate(name, length, lambda: None)) for name, length in lengths.items()
    ]
    entries.sort(key=lambda entry: -entry.recall)
    assert [entry.name for entry in _near(entries)] == again


@pytest.mark.parametrize(("length", "again"), [(3, ["a", "b"]), (2, ["a"]), (1, ["a"])])
def test_only_longer_codes_are_looked_at_from_far_behind(length, again):
    behind = (DEFAULTS.near + DEFAULTS.far) / 2
    entries = [
        _Entry({"recall": recall}, _Candidate(name, n, lambda: None))
        for name, n, recall in (("a", 2, 0.6), ("b", length, 0.6 - behind))
    ]
    assert [entry.name for entry in _near(entries)] == again


@pytest.mark.parametrize(
    ("n", "known", "name"), [(16_000, 0.0, "residual"), (9_000, 0.0, "2 x 4"), (16_000, 1.0, "2 x 4")]
)
def test_of_codes_that_are_level_the_longest_gains_by_many_more_rows(n, known, name):
    """SIFT in 8 bytes: 2 x 4 kept .653 and the residual code .646 after 8,192 rows, but .596 and .608 of other rows."""
    kept = {("2 x 4", 4): 0.653, ("residual", 8): 0.646, ("4 x 2", 2): 0.63}
    ran = [(_Candidate(*key, lambda: None), recall) for key, recall in kept.items()]
    entries = [_Entry({"recall": recall, "rows": 8192}, candidate) for candidate, recall in ran]
    entries.append(_Entry({"recall": 0.66, "rows": 4096}, _Candidate("1 x 16", 16, lambda: None)))
    assert _winner(entries, n, known).name == name


@pytest.mark.parametrize(("behind", "name"), [(0.01, "residual, 16 centroids"), (0.03, "residual")])
def test_a_fast_scan_wins_where_it_is_hardly_behind(behind, name):
    ran = (("residual", 8, 0.6), ("residual, 16 centroids", 1, 0.6 - behind))
    found = [_Entry({"recall": recall, "rows": 100}, _Candidate(own, n, lambda: None)) for own, n, recall in ran]
    assert _winner(found, 100, 1.0).name == name


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


@pytest.mark.parametrize(("n_rows", "metric", "runs"), [(None, "l2", 1), (10**6, "l2", 0), (None, "ip", 0)])
def test_the_leader_of_known_rows_is_learned_again_without_drawn_ones(n_rows, metric, runs, monkeypatch, vectors):
    made = ResidualQuantizer(2, 16, max_iter=2, smoothing=1.0, random_state=0)
    monkeypatch.setattr(
        sys.modules[best.__module__],
        "_candidates",
        lambda *args: iter([_Candidate("a", 2, lambda: ResidualQuantizer(**made.get_params()))]),
    )
    found = best(vectors[0][:300], 2, metric=metric, n_rows=n_rows, random_state=0)
    again = [record for record in found.table if record["name"] == "a, no rows drawn"]
    assert len(again) == runs
    assert found.quantizer.smoothing == (0.0 if again and found.table[0] is again[0] else 1.0)


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


@pytest.mark.parametrize("n_rows", [2000, 4000, 10**9])
def test_fewer_rows_are_mixed_alike(rng, n_rows):
    X = np.arange(2000, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
    race = Race.of(X, None, n_rows, "l2", rng)
    few = race.fewer(400, 200)
    learned, judged, all_judged, all_learned = (
        set(part[:, 0].tolist()) for part in (few.train, few.judge.rows, race.judge.rows, race.train)
    )
    assert (len(learned), len(judged)) == (400, 200)
    assert learned <= all_learned
    assert judged <= all_judged | learned
    assert len(learned & judged) == pytest.approx(race.known * 200, abs=1)
    assert few.judge.truth.ids.max() < 200


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


def test_a_screening_is_judged_by_fewer_rows_than_the_race(vectors, monkeypatch) -> None:
    """One name for both numbers once made every screening as large as the race."""
    screen(monkeypatch, screening_rows=(300, 600), screening_judged=200, judged_rows=900)
    race = Race.of(vectors[0][:2000], None, 10**6, "l2", np.random.default_rng(0))
    screenings = list(_screenings(race, 2000))
    assert [len(screening.race.judge.rows) for screening in screenings] == [200, 200]
    assert len(race.judge.rows) >= 400
