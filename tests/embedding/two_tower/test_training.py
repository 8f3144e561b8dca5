"""The loop: records count from 1, limits end it, the best step is kept. A checkpoint goes on with its own fit only."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import nearkin as nk
from nearkin.embedding import ALS, Adam, AllPairs, Tower
from nearkin.embedding.two_tower.training import AbstractSolver, described, train
from tests.covering import each


class Counting(AbstractSolver):
    """Its objective is given; its embeddings are the number of the step."""

    def __init__(self, objectives: list[float], max_iter: int = 9, **limits: float) -> None:
        super().__init__(max_iter=max_iter, **limits)
        self.objectives, self.done = objectives, 0

    def begin(self, pair: object, loss: object) -> "Counting":
        return self

    def step(self) -> float:
        self.done += 1
        return self.objectives[self.done - 1]

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return torch.full((1, 1), float(self.done)), torch.ones(1, 1)

    def state(self) -> dict[str, Tensor]:
        return {"done": torch.tensor(self.done)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.done = int(state["done"])


def test_records_count_from_one_and_reach_the_callback() -> None:
    heard = []
    history = train(Counting([3.0, 2.0], 2), callback=lambda step, record: heard.append((step, dict(record))))
    assert [record["step"] for record in history] == [1, 2]
    assert [record["objective"] for record in history] == [3.0, 2.0]
    assert heard == [(1, history[0]), (2, history[1])]
    assert all(record["total"] == 2 for record in history)


@each("third", [0.4, 0.5])
def test_patience_ends_it_at_the_best_step(third: float) -> None:
    """The first of those that are level."""
    solver = Counting([1.0] * 9, patience=2)
    metrics = {1: 0.1, 2: 0.5, 3: third, 4: 0.3, 5: 0.9}
    history = train(solver, evaluate=lambda P, Q: metrics[int(P)])
    assert len(history) == 4, "two steps after the best"
    assert solver.done == 2


def test_no_step_begins_after_its_time() -> None:
    assert len(train(Counting([1.0] * 5, 5, max_seconds=1e-9))) == 1


def test_an_objective_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(ValueError, match="the objective became nan at step 2; lower learning_rate"):
        train(Counting([1.0, float("nan")], 2))


PAIRS = nk.data.planted_interactions(40, 30, random_state=0).interactions


def model(**options: object) -> nk.TwoTower:
    return nk.TwoTower(4, **({"regularization": 0.1, "solver": ALS(max_iter=3), "random_state": 0} | options))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a whole fit has left; a fit that is refused changes nothing in it."""
    folder = tmp_path_factory.mktemp("fit") / "c"
    model().fit(PAIRS, checkpoint=folder)
    return folder


@each(
    ("change", "pairs", "message"),
    [
        ({"regularization": 0.2}, {}, "what differs: regularization was 0.1, is 0.2"),
        ({"random_state": 1}, {}, "random_state was 0, is 1"),
        ({"solver": ALS(cg_steps=3)}, {}, "cg_steps was 2, is 3"),
        ({"solver": Adam()}, {}, "solver was ALS, is Adam"),
        ({"loss": AllPairs(omega=0.5)}, {}, "omega was auto, is 0.5"),
        ({"loss": AllPairs(left_costs=np.ones(40))}, {}, "left_costs was None, is array, digest"),
        ({"left": Tower((3,))}, {}, "what differs: left.hidden was .128., is .3."),
        ({}, {"interactions": replace(PAIRS, weights=2 * PAIRS.weights)}, r"interactions was \d+ pairs, digest \w+"),
        ({}, {"validation": PAIRS}, r"validation was None, is \d+ pairs"),
    ],
)  # fmt: skip
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
