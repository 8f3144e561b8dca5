"""The contract of every optimizer on the manifold, over optimizers, shapes, types and moments two at a time."""

import copy
import itertools
import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler, swa_utils

from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import Adam, GivensDescent, MixedOptimizer, RiemannianDescent, StochasticFlow, is_orthogonal
from tests.covering import covering, each
from tests.orthogonal.steps import gradient, point
from tests.reference.tangent import random_skew

Build = Callable[..., Any]
Test = Callable[[Callable[..., None]], Callable[..., None]]


def maker(kind: type, share: float = 1.0, **options: Any) -> Build:
    """Of an optimizer of that kind at a share of the rate, so that all take steps of about one length."""
    return lambda params, lr, **more: kind(params, share * lr, **options | more)


OPTIMIZERS: dict[str, Build] = {
    "givens-random": maker(GivensDescent, selection="random"),
    "givens-greedy-left": maker(GivensDescent, selection="greedy", side="left"),
    "givens-random-3": maker(GivensDescent, selection="random", n_matchings=3),
    "givens-greedy": maker(GivensDescent, selection="greedy"),
    "givens-greedy-2": maker(GivensDescent, selection="greedy", n_matchings=2),
    "givens-steepest": maker(GivensDescent, selection="steepest"),
    "flow-2": maker(StochasticFlow, scale="none"),
    "flow-2-unbiased": maker(StochasticFlow, 1 / 6),
    "flow-3": maker(StochasticFlow, 1 / 2, component_size=3),
    "flow-d/log d": maker(StochasticFlow, 1 / 2, component_size="d/log d"),
    "flow-abs": maker(StochasticFlow, 1 / 4, component_size=3, sampling="abs"),
    "flow-square": maker(StochasticFlow, 1 / 4, component_size=3, sampling="square"),
    "flow-importance": maker(StochasticFlow, 1 / 6, sampling="importance"),
    **{
        f"riemannian-{name}": maker(RiemannianDescent, retraction=name)
        for name in ("exp", "cayley", "qr", "polar", "taylor", "auto", "newton-schulz")
    },
}
MOMENTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "momentum": {"momentum": 0.7},
    "adam": {"momentum": Adam((0.8, 0.95))},
}
SHAPES = [(6, 6), (7, 7), (9, 4), (8, 5), (4, 9), (2, 6, 6), (2, 3, 7, 3)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16]
KINDS = ["givens-greedy", "flow-2", "riemannian-auto"]  # one of each class, for what the class they share does
OF_AXES = ("flow-2-unbiased", "flow-importance", "flow-abs", "flow-square")  # two or three in a component
each_optimizer = each("name", OPTIMIZERS)
each_kind = each("name", KINDS)


def pairs(names: str, *axes: Any) -> Test:
    """Every optimizer with every value of the first axis; of the others every value, and pairs of them in turn."""
    return each(("name", *names.split()), covering(list(OPTIMIZERS), *map(list, axes)))


def in_turn(names: str, *axes: Any) -> Test:
    """Every optimizer once, with the values of the axes in turn: for what the classes share, not each optimizer."""
    values = zip(*(itertools.cycle(axis) for axis in axes), strict=False)
    return each(("name", *names.split()), [(one, *next(values)) for one in OPTIMIZERS])


def tall(X: Tensor) -> Tensor:
    return X.mT if X.shape[-2] < X.shape[-1] else X


def nearby(X: Tensor) -> Tensor:
    """The point at the end of a geodesic of length about 2 from X."""
    T = tall(X)
    W = random_skew(*T.shape[:-1], T.shape[-2], generator=torch.Generator().manual_seed(3), dtype=X.dtype)
    T = torch.matrix_exp(1.5 * W / torch.linalg.matrix_norm(W)[..., None, None]) @ T
    return T if X.shape[-2] >= X.shape[-1] else T.mT


def quadratic(p: Tensor, target: Tensor) -> Tensor:
    return 0.5 * ((p - target) ** 2).sum()


def train(optimizer: Any, params: list[nn.Parameter], targets: list[Tensor], steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = sum((quadratic(p, t) for p, t in zip(params, targets, strict=True)), torch.zeros(()))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@each("name", [name for name in OPTIMIZERS if name[-1] not in "23" and name not in OF_AXES])
@each("moments", MOMENTS)
def test_one_axis_has_nothing_to_turn(name: str, moments: str) -> None:
    """Three optimizers ended in an error. Those of components or several matchings ask for more axes."""
    p = torch.nn.Parameter(torch.ones(2, 1, 1))
    optimizer = OPTIMIZERS[name]([p], 0.1, **MOMENTS[moments])
    for _ in range(2):
        p.grad = torch.full_like(p, 0.5)
        optimizer.step()
    assert p.flatten().tolist() == [1, 1]


@pairs("dtype shape", DTYPES, SHAPES)
def test_on_the_manifold_after_every_step(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    p = nn.Parameter(point(shape, 1, dtype))
    target = point(shape, 2, dtype)
    optimizer = OPTIMIZERS[name]([p], 0.1)
    bound = {torch.float32: 4e-5, torch.float64: 2e-11, torch.bfloat16: 4e-3}[dtype]
    for step in range(6):
        before = p.detach().clone()
        train(optimizer, [p], [target], 1)
        error = orthogonality_error(p)
        assert error <= bound, f"{error:.2e} after step {step}"
        assert not torch.equal(p, before)
    assert p.dtype == dtype


@each(
    ("name", "moments", "shape"),
    [
        *zip(OPTIMIZERS, itertools.cycle(MOMENTS), itertools.cycle([(7, 7), (4, 9)]), strict=False),
        *covering(KINDS, [*MOMENTS], [(4, 9), (7, 7)]),
    ],
)
def test_loss_decreases(name: str, moments: str, shape: tuple[int, ...]) -> None:
    start = point(shape, 1)
    p = nn.Parameter(start.clone())
    target = nearby(start)
    lr = {"plain": 0.2, "momentum": 0.06, "adam": 0.04}[moments]
    steps = 40 if moments == "adam" else 20
    losses = train(OPTIMIZERS[name]([p], lr, **MOMENTS[moments]), [p], [target], steps)
    assert losses[-1] < 0.8 * losses[0], f"{losses[0]:.4g} to {losses[-1]:.4g}"
    assert is_orthogonal(p, 1e-9)


@in_turn("shape", [(6, 6), (9, 4), (2, 6, 6)])
def test_autocast_changes_nothing(name: str, shape: tuple[int, ...]) -> None:
    ends = []
    for cast in (False, True):
        p = nn.Parameter(point(shape, 1, torch.float32))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast):
            optimizer = OPTIMIZERS[name]([p], 0.05)
            train(optimizer, [p], [point(shape, 2, torch.float32)], 3)
            assert is_orthogonal(p, 1e-5)
        ends.append(p.detach())
    torch.testing.assert_close(*ends, rtol=0, atol=1e-5)


SCALES = [30.0, 1.0, 0.0, 1e-4, 1.0, 100.0]  # of gradients: far too long steps, usual ones, none, short ones


@in_turn("moments shape", MOMENTS, [(6, 6), (7, 4), (3, 8)])
def test_mates_change_nothing(name: str, moments: str, shape: tuple[int, ...]) -> None:
    """Together they took the retraction, the number of corrections and the random pairs of the worst of them."""

    def path(numbers: list[int], joined: bool) -> list[Tensor]:
        starts = [point(shape, number) for number in numbers]
        params = [nn.Parameter(X) for X in ([torch.stack(starts)] if joined else starts)]
        optimizer = OPTIMIZERS[name](params, 0.05, **MOMENTS[moments])
        for step in range(6):
            grads = [SCALES[n] * gradient(shape, 100 * step + n) for n in numbers]
            for p, G in zip(params, [torch.stack(grads)] if joined else grads, strict=True):
                p.grad = G
            optimizer.step()
        return list(params[0].detach()) if joined else [p.detach() for p in params]

    everybody = [*range(len(SCALES))]
    for number, *ends in zip(everybody, path(everybody, False), path(everybody, True), strict=True):
        for end in ends:
            torch.testing.assert_close(end, path([number], False)[0], rtol=0, atol=1e-6)


@in_turn("moments dtype", MOMENTS, [torch.float32, torch.bfloat16])
def test_a_resumed_one_and_copies_go_on_bit_for_bit(name: str, moments: str, dtype: torch.dtype) -> None:
    def fresh() -> tuple[list[nn.Parameter], Any]:
        params = [nn.Parameter(point((6, 6), 1, dtype)), nn.Parameter(point((9, 4), 2, dtype))]
        return params, OPTIMIZERS[name](params, 0.05, stabilize_every=3, **MOMENTS[moments])

    targets = [point((6, 6), 3, dtype), point((9, 4), 4, dtype)]
    params, optimizer = fresh()
    train(optimizer, params, targets, 4)
    resumed, other = fresh()
    with torch.no_grad():
        for p, value in zip(resumed, params, strict=True):
            p.copy_(value)
    torch.save(optimizer.state_dict(), file := BytesIO())
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    copies = [other, copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    train(optimizer, params, targets, 3)
    for one in copies:
        twins = one.param_groups[0]["params"]
        train(one, twins, targets, 3)
        assert all(torch.equal(a, b) for a, b in zip(params, twins, strict=True))


@each_optimizer
def test_maximize_is_minimizing_the_negative(name: str) -> None:
    target = point((7, 5), 2)
    up, down = nn.Parameter(point((7, 5), 1)), nn.Parameter(point((7, 5), 1))
    ascent, descent = OPTIMIZERS[name]([up], 0.1, maximize=True), OPTIMIZERS[name]([down], 0.1)
    for _ in range(5):
        for p, optimizer, sign in ((up, ascent, 1.0), (down, descent, -1.0)):
            optimizer.zero_grad()
            (sign * (p * target).sum()).backward()
            optimizer.step()
    torch.testing.assert_close(up, down, rtol=0, atol=1e-14)


@each_kind
def test_groups_closures_and_missing_gradients(name: str) -> None:
    params = [nn.Parameter(point((6, 6), seed)) for seed in (1, 2, 3)]
    optimizer = OPTIMIZERS[name]([{"params": params[:1], "lr": 1e-6}, {"params": params[1:]}], 0.5)
    before = [p.detach().clone() for p in params]

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = quadratic(params[0], point((6, 6), 4)) + quadratic(params[1], point((6, 6), 5))
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    moved = [float((p.detach() - b).abs().max()) for p, b in zip(params, before, strict=True)]
    assert float(loss.detach()) > 0
    assert 0 < moved[0] < 1e-4 < moved[1], moved
    assert moved[2] == 0


BAD: list[tuple[Tensor, dict[str, Any], type[Exception], str]] = [
    (torch.ones(3, 3), {}, ValueError, r"not orthogonal.*orthogonal_"),
    (torch.eye(3).to_sparse(), {}, TypeError, "sparse"),
    (torch.eye(3, dtype=torch.complex64), {}, TypeError, "complex"),
    (torch.eye(3, dtype=torch.int64), {}, TypeError, "int64"),
    (torch.ones(4), {}, ValueError, r"shape \(4,\)"),
    (torch.full((3, 3), torch.nan), {}, ValueError, "NaN"),
    (torch.empty(4, 4, device="meta"), {}, ValueError, "parameter 0 of group 0 .*meta.*to_empty"),
    (torch.eye(4), {"lr": torch.ones(2)}, ValueError, r"lr is a tensor of shape \(2,\)"),
    (torch.eye(4), {"lr": torch.tensor(-1.0)}, ValueError, "lr is -"),
    *((torch.eye(4), {"lr": lr}, ValueError, f"lr is .*{lr}") for lr in (-1.0, float("nan"), float("inf"))),
    (torch.eye(4), {"momentum": 1.5}, ValueError, r"momentum is 1\.5"),
    (torch.eye(4), {"momentum": Adam((0.9, 1.0))}, ValueError, r"betas\[1\] is 1\.0"),
    (torch.eye(4), {"momentum": Adam(0.9)}, ValueError, r"betas is 0\.9"),
    (torch.eye(4), {"momentum": Adam(eps=0.0)}, ValueError, "eps is 0"),
    (torch.eye(4), {"layout": "image"}, ValueError, "layout is 'image'"),
    (torch.eye(4), {"stabilize_every": -1}, ValueError, "stabilize_every is -1"),
]


@each_kind
@each(("value", "options", "error", "match"), BAD)
def test_bad_parameters_and_options(
    name: str, value: Tensor, options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        OPTIMIZERS[name]([nn.Parameter(value, requires_grad=value.dtype != torch.int64)], **{"lr": 0.1} | options)


@each_kind
@each("lr", [float("nan"), float("inf"), -1.0])
def test_a_learning_rate_set_later_is_looked_at(name: str, lr: float) -> None:
    p = nn.Parameter(point((6, 6), 1))
    optimizer = OPTIMIZERS[name]([p], 0.1)
    optimizer.param_groups[0]["lr"] = lr
    with pytest.raises(ValueError, match="lr is"):
        train(optimizer, [p], [point((6, 6), 2)], 1)
    assert torch.equal(p.detach(), point((6, 6), 1))


ARGUMENTS: dict[str, dict[str, Any]] = {
    "StepLR": {"step_size": 2, "gamma": 0.5},
    "MultiStepLR": {"milestones": [2, 4]},
    "ExponentialLR": {"gamma": 0.5},
    "PolynomialLR": {"total_iters": 3},  # to zero
    "LambdaLR": {"lr_lambda": lambda step: min(1.0, step / 3)},  # from zero
    "MultiplicativeLR": {"lr_lambda": lambda step: 0.9},
    "CosineAnnealingLR": {"T_max": 4},  # to zero
    "CosineAnnealingWarmRestarts": {"T_0": 3},
    "CyclicLR": {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 2},
    "OneCycleLR": {"max_lr": 0.1, "total_steps": 6},
    "SWALR": {"swa_lr": 0.01, "anneal_epochs": 3},
}


def schedule_of(name: str, optimizer: Any) -> Any:
    if name in ("SequentialLR", "ChainedScheduler"):
        parts = [lr_scheduler.ConstantLR(optimizer, 0.5, 2), lr_scheduler.ExponentialLR(optimizer, 0.9)]
        chained = name == "ChainedScheduler"
        return lr_scheduler.ChainedScheduler(parts) if chained else lr_scheduler.SequentialLR(optimizer, parts, [2])
    return getattr(swa_utils if name == "SWALR" else lr_scheduler, name)(optimizer, **ARGUMENTS.get(name, {}))


@each("scheduler", ["SWALR", *(name for name in lr_scheduler.__all__ if name != "LRScheduler")])
def test_every_scheduler_of_torch_runs(scheduler: str) -> None:
    for name, moments in zip(KINDS, MOMENTS.values(), strict=True):
        params = [nn.Parameter(point((6, 6), 1)), nn.Parameter(point((7, 3), 2))]
        optimizer = OPTIMIZERS[name](params, 0.1, **moments)
        schedule = schedule_of(scheduler, optimizer)
        for _ in range(5):
            losses = train(optimizer, params, [point((6, 6), 3), point((7, 3), 4)], 1)
            schedule.step(*(losses if scheduler == "ReduceLROnPlateau" else []))
        assert scheduler != "StepLR" or optimizer.param_groups[0]["lr"] == pytest.approx(0.1 / 4)
        assert all(is_orthogonal(p, 1e-9) for p in params)


@pairs("lr moments shape dtype", [1e3, 1e10], MOMENTS, [(8, 8), (9, 4)], [torch.float32, torch.float64])
def test_far_too_long_steps_stay_on_the_manifold(
    name: str, lr: float, moments: str, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    p = nn.Parameter(point(shape, 1, dtype))
    optimizer = OPTIMIZERS[name]([p], lr, **MOMENTS[moments])
    for _ in range(5):
        train(optimizer, [p], [point(shape, 2, dtype)], 1)
        assert orthogonality_error(p) < {torch.float32: 4e-5, torch.float64: 2e-11}[dtype]


HUGE = [(3e38, 0.1), (1e30, 1.0), (1e30, 1e-30), (1.0, 1e38), (1e36, 1e38)]  # largest entry of the gradient, lr


@in_turn("huge shape", HUGE, [(6, 6), (9, 4)])
def test_huge_finite_gradients_and_rates_end_in_an_error_or_on_the_manifold(
    name: str, huge: tuple[float, float], shape: tuple[int, ...]
) -> None:
    largest, lr = huge
    p = nn.Parameter(point(shape, 1, torch.float32))
    optimizer = OPTIMIZERS[name]([p], lr)
    p.grad = largest * (2 * torch.rand(shape, generator=torch.Generator().manual_seed(0)) - 1)
    try:
        optimizer.step()
    except ValueError as error:
        assert largest * lr > 1e30
        assert any(word in str(error) for word in ("lr", "Scale the loss", "shorter step")), error  # noqa: PT017
    assert orthogonality_error(p) < 4e-5


@in_turn("saved moments dtype", DTYPES, [*MOMENTS, "adam"], [*DTYPES, *DTYPES[1:]])
def test_state_of_another_precision_is_converted(
    name: str, saved: torch.dtype, moments: str, dtype: torch.dtype
) -> None:
    source = nn.Parameter(point((6, 6), 1, saved))
    optimizer = OPTIMIZERS[name]([source], 0.05, **MOMENTS[moments])
    train(optimizer, [source], [point((6, 6), 2, saved)], 2)
    p = nn.Parameter(point((6, 6), 1, dtype))
    other = OPTIMIZERS[name]([p], 0.05, **MOMENTS[moments])
    other.load_state_dict(optimizer.state_dict())
    train(other, [p], [point((6, 6), 2, dtype)], 2)
    assert p.dtype == dtype
    assert is_orthogonal(p)


@each_kind
def test_state_of_another_kind_of_optimizer_is_refused(name: str) -> None:
    p = nn.Parameter(point((6, 6), 1))
    with pytest.raises(ValueError, match=r"a group without 'random_state'"):
        OPTIMIZERS[name]([p], 0.1).load_state_dict(torch.optim.SGD([p], 0.1).state_dict())


@each_kind
@each("moments", MOMENTS)
def test_a_rate_may_be_zero_or_a_tensor(name: str, moments: str) -> None:
    starts = [point((6, 6), 1), point((7, 4), 2)]
    targets = [nearby(start) for start in starts]
    found = list[list[Tensor]]()
    for lr in (0.1, torch.tensor(0.1, dtype=torch.float64), 0.0, torch.tensor(0.0)):
        params = [nn.Parameter(start.clone()) for start in starts]
        optimizer = OPTIMIZERS[name](params, lr, **MOMENTS[moments])
        schedule = lr_scheduler.LinearLR(optimizer, 0.5, 1.0, 3)
        for _ in range(3):
            train(optimizer, params, targets, 1)
            schedule.step()
        assert type(optimizer.param_groups[0]["lr"]) is type(lr)  # a schedule writes into a tensor
        found.append([p.detach() for p in params])
    for number, start in enumerate(starts):
        torch.testing.assert_close(found[0][number], found[1][number], rtol=0, atol=1e-13)
        for still in (found[2][number], found[3][number]):
            torch.testing.assert_close(still, start, rtol=0, atol=1e-14)


@each_kind
@each("form", [{}, {"flatten_optimizer_state_dict": True}, {"full_state_dict": True}])
def test_checkpoint_helpers_of_torch_keep_everything(name: str, form: dict[str, bool]) -> None:
    """They take the state of parameters and the options of groups, by name, and drop all else."""
    helpers = pytest.importorskip("torch.distributed.checkpoint.state_dict")

    def fresh(random_state: int) -> tuple[nn.Module, Any]:
        net = nn.ParameterDict({str(n): nn.Parameter(point((6, 6), n, torch.bfloat16)) for n in range(2)})
        rest = nn.Parameter(torch.ones(3))
        net["rest"] = rest
        seeds = {} if name.startswith("riemannian") else {"random_state": random_state}
        first = OPTIMIZERS[name.replace("greedy", "random")]([net["0"], net["1"]], 0.1, momentum=Adam(), **seeds)
        return net, MixedOptimizer(first, torch.optim.AdamW([rest]))

    def go_on(net: Any, optimizer: Any) -> None:
        pull = [point((6, 6), n, torch.bfloat16) for n in (3, 4)]
        train(optimizer, [net["0"], net["1"], net["rest"]], [*pull, torch.zeros(3)], 2)

    (net, optimizer), (other, resumed) = fresh(0), fresh(1)
    go_on(net, optimizer)
    options = helpers.StateDictOptions(**form)
    saved = copy.deepcopy(helpers.get_state_dict(net, optimizer, options=options))
    model, state = saved
    helpers.set_state_dict(other, resumed, model_state_dict=model, optim_state_dict=state, options=options)
    go_on(net, optimizer)
    go_on(other, resumed)
    assert all(torch.equal(one, net[key]) for key, one in other.items())


def test_a_parameter_changed_from_outside_counts() -> None:
    p = nn.Parameter(point((6, 6), 1, torch.bfloat16))
    optimizer = RiemannianDescent([p], 0.1)
    train(optimizer, [p], [point((6, 6), 2, torch.bfloat16)], 2)
    other = point((6, 6), 3, torch.bfloat16)
    with torch.no_grad():
        p.copy_(other)
    p.grad = torch.zeros_like(p)
    optimizer.step()
    torch.testing.assert_close(p.detach(), other, rtol=0, atol=1e-2)
