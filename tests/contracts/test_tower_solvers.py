"""What every solver of the two towers keeps: it learns, and a resumed fit is an uninterrupted one."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.data.interactions import Parts
from nearkin.embedding import Adam
from nearkin.embedding.two_tower.fitting import SOLVERS, as_object

WAYS = [
    *({"solver": name} for name in ("als", "ials++", "adam", "l-bfgs")),
    *({"solver": name} for name in ("gauss-newton", "gauss-newton-joint")),
    {"loss": "in-batch-softmax"},
]


@pytest.fixture(scope="module")
def parts() -> Parts:
    return nk.data.split_random(nk.data.planted_interactions(160, 100, random_state=0).interactions, random_state=0)


@pytest.fixture(scope="module")
def few() -> Parts:
    return nk.data.split_random(nk.data.planted_interactions(60, 40, random_state=0).interactions, random_state=0)


def model(way: dict, **options) -> nk.TwoTower:
    """A quick fit of one way; `options` go to its solver."""
    solver = as_object(way.get("solver", "adam"), "solver", SOLVERS)
    rounds = {"adam": 60, "gauss-newton": 3, "gauss-newton-joint": 3}.get(way.get("solver"), 6)
    fast = {"max_iter": rounds, "learning_rate": 0.01, "start": "random"}
    if "loss" in way:
        fast |= {"batch_size": 128, "learning_rate": 0.02}
    known = solver.get_params()
    solver.set_params(**{name: value for name, value in (fast | options).items() if name in known})
    return nk.TwoTower(6, loss=way.get("loss", "all-pairs"), solver=solver, regularization=0.02, random_state=0)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: next(iter(way.values())))
def test_it_learns_from_a_random_start(parts: Parts, way: dict) -> None:
    fitted = model(way).fit(parts.train, validation=parts.valid)
    first, best = fitted.history_[0]["metric"], max(record["metric"] for record in fitted.history_)
    rng = np.random.default_rng(0)
    random = nk.metrics.ranking_metrics(
        rng.standard_normal((160, 6)), rng.standard_normal((100, 6)), parts.test, seen=parts.train, k=20
    )["ndcg@20"]
    found = fitted.score(parts.test, k=20)
    assert found > 1.5 * random, f"{way}: {found:.3f} after training, {random:.3f} at random"
    assert best >= first
    assert fitted.history_[-1]["objective"] < fitted.history_[0]["objective"] or len(fitted.history_) == 1


@pytest.mark.parametrize("way", WAYS, ids=lambda way: next(iter(way.values())))
def test_a_resumed_fit_is_an_uninterrupted_one(few: Parts, way: dict, tmp_path: Path) -> None:
    if way.get("solver") == "l-bfgs":
        pytest.skip("its curvature pairs are not saved: a resumed fit starts them anew")
    whole = model(way, max_iter=4).fit(few.train, validation=few.valid)
    model(way, max_iter=2).fit(few.train, validation=few.valid, checkpoint=tmp_path / "checkpoint")
    resumed = model(way, max_iter=4).fit(few.train, validation=few.valid, checkpoint=tmp_path / "checkpoint")
    assert [r["objective"] for r in resumed.history_] == [r["objective"] for r in whole.history_]
    np.testing.assert_array_equal(resumed.right_embeddings_, whole.right_embeddings_)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: next(iter(way.values())))
def test_features_embed_entities_that_have_no_pair(parts: Parts, way: dict) -> None:
    """A quarter of the rights lose their pairs; their embeddings come from their features alone."""
    cold = np.arange(0, 100, 4)
    train = parts.train.select(~np.isin(parts.train.indices, cold))
    solver = as_object(way.get("solver", "auto"), "solver", SOLVERS)
    solver.set_params(max_iter=3 if solver.name.startswith("gauss") else 6)
    if solver.name == "adam":
        solver.set_params(learning_rate=0.01)
    if "loss" in way:
        solver = Adam(learning_rate=0.02, batch_size=128, max_iter=8)
    fitted = nk.TwoTower(6, loss=way.get("loss", "all-pairs"), solver=solver, random_state=0).fit(train)
    found = nk.metrics.ranking_metrics(
        fitted.left_embeddings_, fitted.right_embeddings_[cold], parts.train.matrix()[:, cold], k=5
    )["ndcg@5"]
    chance = nk.metrics.ranking_metrics(
        np.random.default_rng(0).standard_normal((160, 25)), np.eye(25), parts.train.matrix()[:, cold], k=5
    )["ndcg@5"]
    assert found > 1.2 * chance, f"{way}: {found:.3f} on unseen rights, {chance:.3f} at random"
    again = fitted.transform_right(train.right_features[cold])
    np.testing.assert_allclose(again, fitted.right_embeddings_[cold], rtol=1e-4, atol=1e-5)
