"""Givens descent: one step is GCD's Algorithm 2; many matchings approach the exponential; exact angles solve pairs."""

import itertools
from functools import partial

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from nearkin.linalg.givens import rotate_columns
from nearkin.linalg.skew import right_skew
from nearkin.orthogonal import GivensDescent, greedy_matching, max_weight_matching
from nearkin.orthogonal.matching import heavy_matchings, most_matchings, random_matchings
from tests.covering import covering, each
from tests.orthogonal.steps import gradient, point, problem, stepped
from tests.refusals import each_refused

MATCHINGS = {"greedy": greedy_matching, "steepest": max_weight_matching}


@each("selection", MATCHINGS)
@each("d", [6, 7])
def test_one_step_is_algorithm_2(selection: str, d: int) -> None:
    X, G = problem(d)
    A = -right_skew(X, G)  # GCD: G^T R - R^T G
    pairs = MATCHINGS[selection](A.abs())
    gcd_lambda = 0.1 * 2**0.5
    g = A[pairs[:, 0], pairs[:, 1]] / 2**0.5
    expected = rotate_columns(X.clone(), pairs, -gcd_lambda * g)
    torch.testing.assert_close(stepped(GivensDescent, X, G, 0.1, selection=selection), expected, rtol=0, atol=1e-13)


@each("d", [6, 7])
def test_a_full_sweep_is_the_exponential_to_first_order(d: int) -> None:
    X, G = problem(d)
    errors = []
    for lr in (1e-3, 1e-4):
        found = stepped(GivensDescent, X, G, lr, selection="random", n_matchings=most_matchings(d), side="right")
        exact = X @ torch.matrix_exp(-lr * right_skew(X, G))
        errors.append(float((found - exact).norm() / (exact - X).norm()))
    assert errors[0] < 0.05
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.2)


@each("d", [5, 6, 9])
def test_matchings_of_one_step_share_no_pair(d: int) -> None:
    generator = torch.Generator().manual_seed(0)
    W = right_skew(*problem(d)).abs()
    for count in (1, 3, most_matchings(d)):
        chosen, new = (T.unflatten(0, (count, -1)) for T in heavy_matchings(W, count, "greedy"))
        for matchings in (
            random_matchings(d, count, generator),
            [part[kept] for part, kept in zip(chosen, new, strict=True)],
        ):
            edges = [frozenset(pair) for pairs in matchings for pair in pairs.tolist()]
            assert len(edges) == len(set(edges))
            for pairs in matchings:
                assert len(pairs.unique()) == pairs.numel()
    everything = random_matchings(d, most_matchings(d), generator)
    assert {frozenset(p) for pairs in everything for p in pairs.tolist()} == {
        frozenset(p) for p in itertools.combinations(range(d), 2)
    }


def test_exact_angles_solve_a_linear_objective_pair_by_pair() -> None:
    X, G = problem(2)
    X = X if float(torch.linalg.det(X)) > 0 else X.flip(1)
    found = stepped(GivensDescent, X, G, 1.0, angle="exact")
    angles = torch.linspace(0, 2 * torch.pi, 10001, dtype=torch.float64)
    turns = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()], -1).reshape(-1, 2, 2)
    assert float((G * found).sum()) <= float((G * (X @ turns)).sum((1, 2)).min()) + 1e-9


@each(
    ("selection", "shape", "n_matchings", "side"),
    covering(
        ["random", "greedy", "steepest"], [(8, 8), (9, 3), (3, 8), (2, 7, 3), (3, 6, 6)], [1, 2, 5], ["auto", "left"]
    ),
)
def test_exact_angles_never_ascend_a_concave_objective(
    selection: str, shape: tuple[int, ...], n_matchings: int, side: str
) -> None:
    """Angles of several matchings, all from one point, made PCA rise in more than half of the steps."""
    p, d = nn.Parameter(point(shape, 3)), max(shape[-2:])
    C = torch.randn(d, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    optimizer = GivensDescent([p], 1.0, selection, angle="exact", n_matchings=n_matchings, side=side)
    weights = torch.arange(1.0, min(shape[-2:]) + 1, dtype=torch.float64)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        X = p if shape[-2] >= shape[-1] else p.mT
        loss = -((C @ X) ** 2 * weights).sum()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert max(b - a for a, b in itertools.pairwise(losses)) < 1e-9
    assert losses[-1] < losses[0] - 1


@each("n_matchings", [1, 3])
def test_an_exact_angle_of_no_gradient_is_zero(n_matchings: int) -> None:
    """It was pi: rows without a gradient changed their signs."""
    X, G = problem(6, 3)
    G[1:5] = 0
    assert torch.equal(stepped(GivensDescent, X, 0 * G, 1.0, angle="exact", n_matchings=n_matchings), X)
    moved = stepped(GivensDescent, X, G, 1.0, "random", angle="exact", n_matchings=n_matchings)
    assert float((G * moved).sum()) <= float((G * X).sum())


def test_bad_input() -> None:
    square, tall = [nn.Parameter(torch.eye(4))], [nn.Parameter(torch.eye(4, 2))]
    cases: list[tuple[list[nn.Parameter], dict[str, object], type[Exception], str]] = [
        (square, {"selection": "best"}, ValueError, "selection is 'best'"),
        (tall, {"side": "right"}, ValueError, "must be square, type side='left'"),
        (square, {"n_matchings": 4}, ValueError, "n_matchings is 4; it must be at most 3"),
        (square, {"angle": "exact", "momentum": 0.5}, ValueError, "angle is 'exact' with momentum"),
        (square, {"random_state": "seed"}, TypeError, "random_state is 'seed'"),
    ]
    each_refused((partial(GivensDescent, params, 0.1, **o), error, match) for params, o, error, match in cases)


def test_random_pairs_turn_what_lies_in_order_in_memory() -> None:
    """A matrix stored by columns moves in its own memory, as its transpose stored by rows would."""
    X, G = problem(9)
    by_rows, by_columns = nn.Parameter(X.contiguous()), nn.Parameter(X.contiguous().mT)
    place = by_columns.data_ptr()
    for p, grad in ((by_rows, G), (by_columns, G.mT)):
        p.grad = grad.clone()  # keeps the order in memory
        GivensDescent([p], 0.1, selection="random").step()
    assert torch.equal(by_columns, by_rows.mT)
    assert by_columns.data_ptr() == place
    assert not by_columns.is_contiguous()


@each("side", ["auto", "left", "right"])
@each("turned", [False, True])
@each("shape", [(6, 6), (7, 7), (40, 40), (9, 4), (4, 9), (1, 1)])
def test_the_compiled_greedy_step_is_that_of_a_batch(shape: tuple[int, int], turned: bool, side: str) -> None:
    d, k = shape
    if side == "right" and d != k:
        return
    X, G = point(shape, 0), gradient(shape, 1)
    X = X.mT.contiguous().mT if turned else X
    p, batch = nn.Parameter(X), nn.Parameter(torch.stack([X, X]))
    p.grad, batch.grad = G, torch.stack([G, G])
    compiled, slow = (GivensDescent([q], 0.1, "greedy", side=side) for q in (p, batch))
    assert compiled._compiled_step(p, compiled.param_groups[0])
    assert not slow._compiled_step(batch, slow.param_groups[0])
    slow.step()
    torch.testing.assert_close(p.detach(), batch.detach()[0], rtol=0, atol=1e-13)


def test_hooks_and_profilers_see_every_step() -> None:
    p = nn.Parameter(torch.eye(4))
    p.grad = torch.ones(4, 4).triu()
    optimizer, seen = GivensDescent([p], 0.1, "random"), list[str]()
    handles = [
        optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
        optimizer.register_step_post_hook(lambda *_: seen.append("after")),
        register_optimizer_step_post_hook(lambda *_: seen.append("everywhere")),
    ]
    optimizer.step()
    assert seen == ["before", "after", "everywhere"]
    for handle in handles:
        handle.remove()
    profile = torch.autograd.profiler.profile()
    with profile:
        optimizer.step()
    assert len(seen) == 3
    assert "Optimizer.step#GivensDescent.step" in [event.name for event in profile.function_events or ()]
