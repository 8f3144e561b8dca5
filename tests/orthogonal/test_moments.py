"""The momentum buffer turns with the point, and Adam's step has both bias corrections."""

import pytest
import torch

from nearkin.orthogonal import Adam, GivensDescent, StochasticFlow
from nearkin.orthogonal.optimizer import first_moment, step_length

TURNING = {
    "flow, s = 2": lambda p, **kw: StochasticFlow(p, 0.1, 2, scale="none", **kw),
    "flow, s = 3": lambda p, **kw: StochasticFlow(p, 0.1, 3, scale="none", **kw),
    "givens, rows": lambda p, **kw: GivensDescent(p, 0.1, "random", **kw),
    "givens, columns": lambda p, **kw: GivensDescent(p, 0.1, "greedy", **kw),
}


@pytest.mark.parametrize("moments", [{"momentum": 0.7}, {"momentum": Adam((0.7, 0.9))}], ids=str)
@pytest.mark.parametrize("name", TURNING)
def test_the_buffer_turns_with_the_point(name: str, moments: dict) -> None:
    """X <- T X (X T for columns) and M <- T (0.7 M + G): a buffer left behind would point along old axes."""
    generator, M = torch.Generator().manual_seed(1), torch.zeros(6, 6, dtype=torch.float64)
    p = torch.nn.Parameter(torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64))[0])
    optimizer = TURNING[name]([p], **moments)
    share = 1.0 if moments["momentum"] == 0.7 else 1 - 0.7
    for _ in range(4):
        before = p.detach().clone()
        p.grad = torch.randn(6, 6, generator=generator, dtype=torch.float64)
        optimizer.step()
        turn = p.detach() @ before.T if "columns" not in name else before.T @ p.detach()
        assert float((turn - torch.eye(6)).norm()) > 0.05, "a step that turns something"
        M = 0.7 * M + share * p.grad
        M = turn @ M if "columns" not in name else M @ turn
        torch.testing.assert_close(optimizer.state[p]["momentum"].reshape(6, 6), M, rtol=1e-9, atol=1e-12)


def test_adams_step_has_both_bias_corrections() -> None:
    """Kingma and Ba, Algorithm 1, with one second moment a matrix: at a constant gradient every step is lr long."""
    group, state = {"lr": 0.1, "betas": (0.8, 0.95), "momentum": 0.0, "eps": 0.0}, {"step": 0}
    G = torch.full((1, 2, 2), 3.0, dtype=torch.float64)
    for step in range(1, 5):
        state["step"] = step
        M = first_moment(G, group, state)
        length = step_length([G[0]], group, state)
        torch.testing.assert_close(length * M[0], torch.full((2, 2), 0.1, dtype=torch.float64))


def test_heavy_ball_and_plain_steps() -> None:
    group, state = {"lr": 0.1, "betas": None, "momentum": 0.5, "eps": 0.0}, {"step": 1}
    G = torch.ones(1, 2, 2)
    assert first_moment(G, {**group, "momentum": 0.0}, {}) is G
    for wanted in (1.0, 1.5, 1.75):
        torch.testing.assert_close(first_moment(G, group, state), wanted * G)
    assert step_length([G[0]], group, state) == 0.1
