"""A checkpoint goes on with its own fit only: what differs is said by name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.embedding import ALS, Adam, AllPairs, Tower
from nearkin.embedding.two_tower.training import described

PAIRS = nk.data.planted_interactions(40, 30, random_state=0).interactions
HEAVIER = replace(PAIRS, weights=2 * PAIRS.weights)


def model(**options: object) -> nk.TwoTower:
    return nk.TwoTower(4, **({"regularization": 0.1, "solver": ALS(max_iter=3), "random_state": 0} | options))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a whole fit has left; a fit that is refused changes nothing in it."""
    folder = tmp_path_factory.mktemp("fit") / "c"
    model().fit(PAIRS, checkpoint=folder)
    return folder


@pytest.mark.parametrize(
    ("change", "pairs", "message"),
    [
        ({"regularization": 0.2}, {}, "what differs: regularization was 0.1, is 0.2"),
        ({"random_state": 1}, {}, "random_state was 0, is 1"),
        ({"solver": ALS(cg_steps=3)}, {}, "cg_steps was 2, is 3"),
        ({"solver": Adam()}, {}, "solver was ALS, is Adam"),
        ({"loss": AllPairs(omega=0.5)}, {}, "omega was auto, is 0.5"),
        ({"loss": AllPairs(left_costs=np.ones(40))}, {}, "left_costs was None, is array, digest"),
        ({"left": Tower((3,))}, {}, "what differs: left.hidden was .128., is .3."),
        (
            {},
            {"interactions": replace(PAIRS, weights=2 * PAIRS.weights)},
            r"interactions was \d+ pairs, digest \w+, is",
        ),
        ({}, {"validation": PAIRS}, r"validation was None, is \d+ pairs"),
    ],
)
def test_other_settings_and_data_are_refused(checkpoint: Path, change: dict, pairs: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(**change).fit(**{"interactions": PAIRS} | pairs, checkpoint=checkpoint)


def test_how_long_it_runs_may_change(tmp_path: Path) -> None:
    model(solver=ALS(max_iter=2)).fit(PAIRS, checkpoint=tmp_path / "c")
    resumed = model(solver=ALS(max_iter=4, patience=3)).fit(PAIRS, checkpoint=tmp_path / "c")
    whole = model(solver=ALS(max_iter=4)).fit(PAIRS)
    np.testing.assert_array_equal(resumed.left_embeddings_, whole.left_embeddings_)


def test_a_fit_without_a_seed_goes_on_with_the_one_it_drew(tmp_path: Path) -> None:
    """Another seed would hold out other pairs and choose another lambda for the same tables."""
    first = model(random_state=None, regularization="auto").fit(PAIRS, checkpoint=tmp_path / "c")
    again = model(random_state=None, regularization="auto").fit(PAIRS, checkpoint=tmp_path / "c")
    assert again.regularization_ == first.regularization_
    np.testing.assert_array_equal(again.left_embeddings_, first.left_embeddings_)


def test_what_is_described_is_told_apart() -> None:
    one, other = np.random.default_rng(0), np.random.default_rng(1)
    assert described(one) != described(other)
    assert described(np.zeros(3)) != described(np.zeros((3, 1)))
    assert described(np.float64(0.5)) == 0.5
    assert described(PAIRS) == described(replace(PAIRS))
