"""The loop: records count from 1, limits end it, the best step is kept."""

import pytest
import torch
from torch import Tensor

from nearkin.embedding.two_tower.fitting import train
from nearkin.embedding.two_tower.towers import AbstractSolver
from tests.covering import each


class Counting(AbstractSolver):
    """Its objective is given; its embeddings are the number of the step."""

    replaced = ("done",)

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
