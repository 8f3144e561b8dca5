"""Held-out pairs: whether they are enough, which lefts are ranked, the strength of regularization."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import nearkin as nk
from nearkin.embedding.two_tower import choice
from nearkin.embedding.two_tower.choice import DEFAULTS, choose_regularization, validation_ranking
from nearkin.embedding.two_tower.objective import AllPairs, Objective, initial_tables

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


def test_a_bounded_number_of_lefts_with_a_pair_is_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    with_pair = np.flatnonzero(np.diff(PARTS.valid.indptr))
    whole = validation_ranking(PARTS.valid, PARTS.train, np.random.default_rng(0))
    assert whole is not None
    np.testing.assert_array_equal(whole.lefts, with_pair)
    monkeypatch.setattr(choice, "OF_TRIALS", replace(choice.OF_TRIALS, queries=10))
    some = validation_ranking(PARTS.valid, PARTS.train, np.random.default_rng(0))
    assert some is not None
    assert len(np.unique(some.lefts)) == 10
    assert set(some.lefts) < set(with_pair)
    assert (np.diff(some.lefts) > 0).all()


def test_the_metric_is_the_ndcg_of_unseen_rights() -> None:
    ranking = validation_ranking(PARTS.valid, PARTS.train, np.random.default_rng(0))
    assert ranking is not None
    P, Q = (torch.randn(n, 4, generator=torch.Generator().manual_seed(n)) for n in PARTS.train.shape)
    expected = nk.metrics.ranking_metrics(P.numpy(), Q.numpy(), PARTS.valid, seen=PARTS.train, k=100)
    assert ranking.metric(P, Q) == pytest.approx(expected["ndcg@100"])


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


@pytest.mark.parametrize(
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
