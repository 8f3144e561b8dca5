"""`loss="auto"`: what short fits choose, when nothing is chosen, and that a fit with it is the chosen loss's own; the
strength of regularization by held-out pairs."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import nearkin as nk
from nearkin.embedding import ALS, Adam, AllPairs, CosineSoftmax
from nearkin.embedding.two_tower.choice import DEFAULTS, choose_regularization, hold_out, validation_ranking
from nearkin.embedding.two_tower.objective import Objective, growth, initial_tables
from tests.covering import each

K = 6


def clusters(n_lefts: int = 200, inside: float = 1.0, seed: int = 0) -> nk.Interactions:
    """30 blocks of 12 rights; a left has 8 pairs, the share `inside` of them in one block, the others by popularity.
    Weights are noise."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, 361.0)
    rows, rights = np.repeat(np.arange(n_lefts), 8), np.empty(8 * n_lefts, int)
    for i in range(n_lefts):
        block = 12 * rng.integers(30) + rng.choice(12, 8, replace=False)
        popular = rng.choice(360, 8, replace=False, p=popularity / popularity.sum())
        rights[8 * i : 8 * i + 8] = np.where(rng.random(8) < inside, block, popular)
    return nk.Interactions.from_pairs(rows, rights, np.exp(2 * rng.standard_normal(len(rows))).astype(np.float32))


BLOCKS, POPULAR = clusters(), clusters(inside=0.0)


class Watched(NamedTuple):
    """A fit, its seconds, and the records of its callback."""

    model: nk.TwoTower
    seconds: float
    records: list[dict]


LEFTS, RIGHTS = (X.ravel() for X in np.indices((400, 10)))


def test_the_latest_pairs_are_held_out_and_random_ones_of_users_without_any(rng: np.random.Generator) -> None:
    times = np.select([LEFTS == 7, LEFTS > 300], [2.0, 0.5 * rng.random(4000)], rng.random(4000))  # user 7 comes last
    train, held, dropped = hold_out(nk.Interactions.from_pairs(LEFTS, RIGHTS, timestamps=times), 0.2, rng)
    late = held.timestamps > train.timestamps.max()
    assert set(dropped.rows) == {7}
    assert late.sum() > 700
    assert not set(held.rows[late]) & set(held.rows[~late])
    assert (~late).sum() == pytest.approx(0.2 * 990, abs=60)


@each("times", [None, np.zeros(4000), np.arange(4000) % 2, np.arange(4000)])
def test_pairs_are_drawn_where_times_hold_out_no_such_share(times: np.ndarray | None) -> None:
    pairs = nk.Interactions.from_pairs(LEFTS, RIGHTS, timestamps=times)
    held = hold_out(pairs, 0.1, np.random.default_rng(0)).valid
    drawn = nk.data.split_random(pairs, valid=0.1, test=0, random_state=np.random.default_rng(0)).valid
    np.testing.assert_array_equal([held.rows, held.indices], [drawn.rows, drawn.indices])


def test_growing_items_lead_what_comes_next_also_in_a_model_read_and_continued(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    users, times = rng.integers(0, 500, 10_000), np.sort(rng.random(10_000))
    age = np.minimum(0.3 * rng.exponential(size=10_000), 1 + times)
    rights = 60 * (users % 10) + (30 * (1 + times - age)).astype(int) % 60
    train, _, test = nk.data.split_by_time(nk.Interactions.from_pairs(users, rights, timestamps=times), valid=0)
    timed, timeless = (nk.TwoTower(K, random_state=0).fit(pairs) for pairs in (train, replace(train, timestamps=None)))
    assert timed.loss_.recency >= 0.5, why(timed)
    assert timed.evaluate(test, k=20)["recall@20"] > 1.2 * timeless.evaluate(test, k=20)["recall@20"]
    timed.save(tmp_path / "model")
    again = nk.TwoTower.load(tmp_path / "model").partial_fit(train)
    bias = growth(train).numpy() * timed.loss_.recency * timed.loss_.temperature
    spread = [np.std(model.right_embeddings_[:, -1] - bias) for model in (timed, again)]
    assert max(spread) < np.std(bias), spread


@pytest.fixture(scope="module")
def watched() -> Watched:
    records, began = list[dict](), time.perf_counter()
    model = nk.TwoTower(K, random_state=0).fit(BLOCKS, callback=lambda step, record: records.append(dict(record)))
    return Watched(model, time.perf_counter() - began, records)


@pytest.fixture(scope="module")
def fitted(watched: Watched) -> nk.TwoTower:
    return watched.model


def why(model: nk.TwoTower) -> str:
    (found,) = [trial["why"] for trial in model.trials_ if "why" in trial]
    return found


def test_few_dimensions_and_many_blocks_are_for_the_softmax_and_noise_is_no_weight(fitted: nk.TwoTower) -> None:
    assert (type(fitted.loss_), fitted.loss_.weighting) == (CosineSoftmax, "none"), why(fitted)
    assert "loss cosine-softmax (" in why(fitted)
    scores = {trial["loss"]: trial["recall@20"] for trial in fitted.trials_}  # the last one of each loss
    assert scores["cosine-softmax"] > 1.2 * scores["all-pairs"], scores


def test_popularity_alone_is_left_to_all_pairs_again_and_again() -> None:
    popular, again = (nk.TwoTower(K, random_state=0).fit(POPULAR) for _ in range(2))
    assert isinstance(popular.loss_, AllPairs), why(popular)
    own = nk.TwoTower(K, loss=popular.loss_, random_state=0).fit(POPULAR)
    for other in (own, again):
        np.testing.assert_array_equal(popular.right_embeddings_, other.right_embeddings_)
    timeless = [[{**trial, "seconds": 0} for trial in model.trials_] for model in (popular, again)]
    assert timeless[0] == timeless[1]


def test_a_chosen_softmax_is_trained_on_from_its_short_fit(fitted: nk.TwoTower) -> None:
    first, *_, last = (record["objective"] for record in fitted.history_)
    assert first < 1.2 * last


def test_every_short_fit_is_recorded_and_reported(watched: Watched) -> None:
    model = watched.model
    assert all(0 < trial["seconds"] <= watched.seconds for trial in model.trials_)
    trials = [record for record in watched.records if record.get("phase") == "loss"]
    assert [record["step"] for record in trials] == list(range(1, len(model.trials_) + 1))
    assert len(trials) <= trials[0]["total"]
    for record, trial in zip(trials, model.trials_, strict=True):
        final = {"why", "won", "error"}  # known when all have ended
        assert {name: record[name] for name in trial.keys() - final} == {n: trial[n] for n in trial.keys() - final}
        assert {"loss", "settings", "sweeps", "seconds", "recall@20", "ndcg@20"} <= trial.keys()
    softmax = sum(trial["sweeps"] for trial in trials if trial["loss"] == "cosine-softmax")
    assert softmax <= DEFAULTS.sweeps * len(DEFAULTS.temperatures) + DEFAULTS.last_sweeps * (2 + len(DEFAULTS.imputed))


@pytest.mark.parametrize(
    ("options", "pairs", "reason"),
    [
        ({}, clusters(60), "users have held-out pairs; a choice needs 100"),
        ({"regularization": 0.1}, BLOCKS, "a strength of regularization was given"),
        ({"solver": ALS(max_iter=2)}, BLOCKS, "solver 'als' was given"),
        ({"n_components": 1}, BLOCKS, "n_components is 1"),
        ({}, BLOCKS.with_features(right=np.ones((BLOCKS.shape[1], 2), np.float32)), "features"),
        ({"left": nn.Embedding(200, K), "solver": Adam(max_iter=2)}, BLOCKS, "towers of your own"),
    ],
)
def test_it_is_all_pairs_where_nothing_can_be_chosen(options: dict, pairs: nk.Interactions, reason: str) -> None:
    model, plain = (nk.TwoTower(**{"n_components": K, "loss": loss, "random_state": 0} | options)
                    for loss in ("auto", "all-pairs"))  # fmt: skip
    model.fit(pairs)
    assert len(model.trials_) == 1
    assert reason in why(model)
    np.testing.assert_array_equal(model.left_embeddings_, plain.fit(pairs).left_embeddings_)


def renumbered(pairs: nk.Interactions) -> nk.Interactions:
    left, right = (np.random.default_rng(n).permutation(n) for n in pairs.shape)
    catalogues = {"left_ids": np.arange(len(left)), "right_ids": np.arange(len(right))}
    return nk.Interactions.from_pairs(left[pairs.rows], right[pairs.indices], pairs.weights, **catalogues)


def test_given_validation_pairs_judge_whatever_the_numbers_of_both_sides() -> None:
    train, valid, _ = nk.data.split_random(BLOCKS, valid=0.2, test=0, random_state=1)
    values = list[float]()
    for pairs, held in ((train, valid), (renumbered(train), renumbered(valid))):
        model = nk.TwoTower(K, random_state=0).fit(pairs, validation=held)
        assert f"of {len(np.unique(valid.rows))} users" in why(model)
        assert isinstance(model.loss_, CosineSoftmax)
        values += [trial["value"] for trial in model.trials_ if trial["won"]]
    assert values[0] == pytest.approx(values[1], rel=0.05)
    assert len(model.seen_) == len(train)


def test_a_saved_model_keeps_the_choice(fitted: nk.TwoTower, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    model = nk.TwoTower.load(tmp_path / "m")
    assert model.loss == "auto"
    assert repr(model.loss_) == repr(fitted.loss_)
    assert model.trials_ == fitted.trials_
    history = [list(BLOCKS.right_ids[:4]), list(BLOCKS.right_ids[20:23])]
    np.testing.assert_array_equal(model.embed_left(history), fitted.embed_left(history))
    more = nk.Interactions.from_pairs([0, 999], BLOCKS.right_ids[[3, 4]])
    model.partial_fit(more)
    assert (model.solver_, model.trials_) == ("sphere", fitted.trials_)
    assert model.left_embeddings_.shape == (201, K)


def test_an_index_is_learned_with_the_chosen_loss() -> None:
    model = nk.TwoTower(K, index=nk.quantization.IndexingLayer(K, 2, 16, random_state=0), random_state=0).fit(BLOCKS)
    assert model.solver_ == "joint"
    assert isinstance(model.loss_, CosineSoftmax)


PARTS = nk.data.split_random(nk.data.planted_interactions(80, 50, random_state=0).interactions, random_state=0)


@pytest.fixture(scope="module")
def objective() -> Objective:
    return AllPairs().objective(PARTS.train)


def tables(k: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    return initial_tables(PARTS.train, k, torch.Generator().manual_seed(0))


def test_too_few_pairs_are_no_ranking() -> None:
    rng, few = np.random.default_rng(0), np.arange(len(PARTS.valid)) < DEFAULTS.fewest_pairs - 1
    assert validation_ranking(PARTS.valid.select(few), PARTS.train, rng) is None
    enough = PARTS.valid.select(np.arange(len(PARTS.valid)) < DEFAULTS.fewest_pairs)
    assert validation_ranking(enough, PARTS.train, rng) is not None


def chosen(objective: Objective, metrics: list[list[float]]) -> tuple[float, list[dict]]:
    """The share of the noise level that is chosen where the held-out values of three lefts are these, and the
    records."""
    heard, left = [], list(metrics)
    ranking = SimpleNamespace(values=lambda P, Q: np.array(left.pop(0)))
    found = choose_regularization(
        objective, tables(), ranking, noise=objective.noise_level(np.random.default_rng(0)),
        callback=lambda step, record: heard.append({"number": step, **record}),
    )  # fmt: skip
    return found.strength / objective.noise_level(np.random.default_rng(0)), heard


@each(
    ("metrics", "share", "tried"),
    [
        ([[0.5, 0.6, 0.7], [0.4, 0.5, 0.6]], 0.5, 2),  # weaker is worse
        ([[0.5, 0.6, 0.7], [0.6, 0.5, 0.75]], 0.5, 2),  # better by less than a standard error is chance
        ([[0.3] * 3, [0.4] * 3, [0.5] * 3, [0.6] * 3], 0.0625, 4),  # weaker is better to the end
        ([[0.3] * 3, [0.4] * 3, [0.39] * 3], 0.25, 3),
    ],
)
def test_the_path_ends_where_the_metric_no_longer_rises(
    objective: Objective, metrics: list[list[float]], share: float, tried: int
) -> None:
    found, heard = chosen(objective, metrics)
    assert found == pytest.approx(share)
    assert [record["number"] for record in heard] == list(range(1, tried + 1))
    assert [record["value"] for record in heard] == pytest.approx(np.mean(metrics, axis=1))
    assert {record["phase"] for record in heard} == {"regularization"}
    noise = objective.noise_level(np.random.default_rng(0))
    assert [record["regularization"] / noise for record in heard] == pytest.approx(DEFAULTS.strengths[:tried])


def test_without_held_out_pairs_it_is_a_quarter_of_the_noise_level(objective: Objective) -> None:
    start = tables()
    found = choose_regularization(objective, start, None, noise=0.4)
    assert found.strength == pytest.approx(0.1)
    assert found.tables is start
