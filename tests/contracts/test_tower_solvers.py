"""What every solver of the two towers keeps: it learns, and the best step is its result."""

from dataclasses import replace

import numpy as np
import pytest

import nearkin as nk
from nearkin.embedding.two_tower.fitting import as_object

WAYS = [*({"solver": name} for name in ("als", "ials++", "adam", "gauss-newton")), {"loss": "in-batch-softmax"}]


PARTS = nk.data.split_random(nk.data.planted_interactions(100, 60, random_state=0).interactions, random_state=0)
each_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: next(iter(way.values())))


def model(way: dict, **options) -> nk.TwoTower:
    """A quick fit of one way; `options` go to its solver."""
    solver = as_object(way.get("solver", "adam"), "solver")
    rounds = {"adam": 60, "gauss-newton": 3}.get(way.get("solver"), 6)
    fast = {"max_iter": rounds, "learning_rate": 0.01, "start": "random"}
    if "loss" in way:
        fast |= {"batch_size": 128, "learning_rate": 0.02, "max_iter": 8}
    known = solver.get_params()
    solver.set_params(**{name: value for name, value in (fast | options).items() if name in known})
    return nk.TwoTower(6, loss=way.get("loss", "all-pairs"), solver=solver, regularization=0.02, random_state=0)


def ndcg(P: np.ndarray, Q: np.ndarray, wanted: object, k: int = 20, **options) -> float:
    return nk.metrics.ranking_metrics(P, Q, wanted, k=k, **options)[f"ndcg@{k}"]


@pytest.fixture(scope="module")
def parts() -> nk.data.Parts:
    return nk.data.split_random(nk.data.planted_interactions(160, 100, random_state=0).interactions, random_state=0)


@each_way
def test_it_learns_from_a_random_start(parts: nk.data.Parts, way: dict) -> None:
    fitted, rng = model(way).fit(parts.train, validation=parts.valid), np.random.default_rng(0)
    found = ndcg(fitted.left_embeddings_, fitted.right_embeddings_, parts.test, seen=parts.train)
    random = ndcg(*(rng.standard_normal((n, 6)) for n in parts.train.shape), parts.test, seen=parts.train)
    assert found > 1.5 * random, f"{way}: {found:.3f} after training, {random:.3f} at random"
    assert max(record["metric"] for record in fitted.history_) >= fitted.history_[0]["metric"]
    assert fitted.history_[-1]["objective"] < fitted.history_[0]["objective"] or len(fitted.history_) == 1


@each_way
def test_features_embed_entities_that_have_no_pair(way: dict) -> None:
    """A quarter of the rights lose their pairs; their embeddings come from their features alone."""
    cold = np.arange(0, 60, 4)
    train = PARTS.train.select(~np.isin(PARTS.train.indices, cold))
    fitted = model(way, start="auto", max_iter=12 if "loss" in way else 3).fit(train)
    unseen, rng = PARTS.train.matrix()[:, cold], np.random.default_rng(0)
    found = ndcg(fitted.left_embeddings_, fitted.right_embeddings_[cold], unseen, k=5)
    chance = ndcg(rng.standard_normal((100, 15)), np.eye(15), unseen, k=5)
    assert found > 1.2 * chance, f"{way}: {found:.3f} on unseen rights, {chance:.3f} at random"
    again = fitted.transform_right(train.right_features[cold])
    np.testing.assert_allclose(again, fitted.right_embeddings_[cold], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", [*WAYS, {"loss": "cosine-softmax", "solver": "sphere"}], ids=str)
def test_the_result_is_that_of_the_best_step(way: dict) -> None:
    """Steps long enough that a later one is worse."""
    sides = {"left_features": None, "right_features": None} if way.get("solver") == "sphere" else {}
    parts = [replace(part, **sides) for part in (PARTS.train, PARTS.valid)]
    worse = {"learning_rate": 0.3, "n_sampled": 4, "patience": None, "max_iter": 12}
    fitted = model(way, **worse).set_params(regularization="auto").fit(parts[0], validation=parts[1])
    metrics = [record["metric"] for record in fitted.history_]
    assert fitted.evaluate(parts[1], k=100)["ndcg@100"] == pytest.approx(max(metrics), abs=1e-6), metrics


def test_objectives_have_one_unit() -> None:
    """ALS and sweeps over spheres gave sums over the pairs, the others the mean of an observed pair."""
    last = {
        solver: model({"solver": solver}, max_iter=12).fit(PARTS.train).history_[-1]["objective"]
        for solver in ("als", "ials++", "gauss-newton")
    }
    assert max(last.values()) < 1.5 * min(last.values()), last
    softmax = nk.TwoTower(6, loss="cosine-softmax", random_state=0)
    history = softmax.fit(replace(PARTS.train, left_features=None, right_features=None)).history_
    assert 0 < history[-1]["objective"] < 2 * np.log(100)
