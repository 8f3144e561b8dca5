"""The grid leaves the model at its best point."""

import pytest

import nearkin as nk


def test_tuning_sets_the_best_of_the_grid() -> None:
    parts = nk.data.split_random(nk.data.planted_interactions(100, 60, random_state=0).interactions, random_state=0)
    model = nk.TwoTower(6, random_state=0)
    seen = []
    records = model.tune(
        parts.train, parts.valid, omegas=[0.1, 50.0], regularizations=[0.01, 1.0], callback=lambda *a: seen.append(a)
    )
    assert len(records) == len(seen) == 4
    assert [r["ndcg@100"] for r in records] == sorted((r["ndcg@100"] for r in records), reverse=True)
    assert (model.loss.omega, model.regularization) == (records[0]["omega"], records[0]["regularization"])
    assert model.regularization == 0.01, f"a penalty that empties the model cannot win: {records}"


def test_the_default_grid_is_around_auto() -> None:
    train = nk.data.planted_interactions(60, 40, random_state=0).interactions
    assert len({r["omega"] for r in nk.TwoTower(4, random_state=0).tune(train)}) == 3
    with pytest.raises(ValueError, match="validation has no pair"):
        nk.TwoTower(4).tune(train, train.select(train.rows < 0))
