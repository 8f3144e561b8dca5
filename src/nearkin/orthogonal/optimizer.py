"""The base class of optimizers on the manifold: batches of tall matrices, checks, the loop, moments, saving.

The momentum of a method that rotates rows or columns has the gradient's shape and is rotated with the point: X <- R X,
M <- R M. The rotation is an isometry that maps tangent vectors at X to tangent vectors at R X. So no projection is
needed, and the skew form of M is transported exactly: Omega(R X, R M) = R Omega(X, M) R^T. The
second moment is one number per matrix: more than one would depend on the basis, which rotations change.
"""

# pyright: reportConstantRedefinition=false, reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from numbers import Integral
from typing import TYPE_CHECKING, Any, ParamSpec, TypeGuard, TypeVar, cast

import numpy as np
import torch
from torch import Tensor
from torch.autograd import _profiler_enabled  # pyright: ignore[reportPrivateImportUsage]
from torch.autograd.graph import increment_version
from torch.nn.utils import get_total_norm
from torch.optim.optimizer import ParamsT
from torch.optim.optimizer import _global_optimizer_post_hooks as _GLOBAL_POST
from torch.optim.optimizer import _global_optimizer_pre_hooks as _GLOBAL_PRE

from nearkin._check import check_choice, check_integer, check_real, torch_generator
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.linalg.orthonormal import nearest_orthogonal, newton_schulz, orthogonality_error
from nearkin.linalg.skew import for_kernels
from nearkin.orthogonal.diagnostics import LAYOUTS, is_orthogonal

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

P = ParamSpec("P")
R = TypeVar("R")
Array = TypeVar("Array", Tensor, np.ndarray)

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SHARED: dict[str, float | bool] = {"eps": 1e-8, "foreach": True, "check_finite": True}  # not every class names them


# sizes of matrices, in entries or side length, at which the faster way to compute the same step changes
BATCHED = 64 * 64  # parameters of one shape up to this size are one batch
# "taylor" and "newton-schulz" up to here are one compiled call on one thread; on more, larger products deserve torch's
COMPILED, COMPILED_THREADED = 512 * 512, 128 * 128
PRODUCTS = 128  # "cayley" of square matrices up to this side is products, not a solve


def as_tall(
    p: Array,  # (..., d, k), or a convolution kernel (C_out, C_in, *window), of a transposed one (C_in, C_out, *window)
    layout: str = "matrix",
) -> Array:
    """Return a view (b, d, k), d >= k, of a tensor or array p; a copy if p's memory has no such view.

    A wide matrix is transposed, so that its rows are orthonormal. A convolution kernel is its flattened
    (C_in * window, C_out) matrix (flows, section 6.2, up to the order of rows), transposed if C_out is the longer side.
    """
    if layout == "convolution":
        p = p.reshape(p.shape[0], -1)
    p = p[None] if p.ndim == 2 else p.reshape(-1, *p.shape[-2:])
    return p if p.shape[-2] >= p.shape[-1] else p.swapaxes(-2, -1)


def from_tall(X: Tensor, p: Tensor, layout: str) -> Tensor:
    """Return tall matrices X (b, d, k) in the shape of p: the inverse of `as_tall`."""
    shape = p.flatten(1).shape if layout == "convolution" else p.shape
    return (X if shape[-2] >= shape[-1] else X.mT).reshape(p.shape)


def working_dtype(p: Tensor) -> torch.dtype:
    """float64 parameters are updated in float64, all others in float32."""
    return torch.float64 if p.dtype == torch.float64 else torch.float32


def without_autocast(p: Tensor) -> AbstractContextManager[object]:
    """A context in which products on p's device have the type of their factors."""
    device = p.device.type  # torch's own context takes 10 microseconds, a test of it one
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def check_not_flat(p: Tensor, name: str) -> None:
    """TypeError if p is a FlatParameter, several parameters in a row."""
    if vars(p).get("_is_flat_param", False):  # torch's mark: it is a plain Parameter
        raise TypeError(
            f"{name} is a FlatParameter of FSDP: several parameters in a row, so that nothing in it can be held "
            "orthonormal. Shard by torch.distributed.fsdp.fully_shard, or leave the modules of orthonormal matrices "
            "out (ignored_modules=)"
        )


def is_sharded(p: Tensor) -> "TypeGuard[DTensor]":
    """Whether p is a DTensor, cut into parts by `fully_shard`; by name, since torch.distributed need not be loaded."""
    return type(p).__name__ == "DTensor"


def whole(p: Tensor) -> Tensor:
    """Return p without its graph, gathered from all processes if it is sharded."""
    return (p.full_tensor() if is_sharded(p) else p).detach()


def write_whole(p: Tensor, value: Tensor, source: int | None = None) -> None:
    """Copy the whole `value` into p, into the part of it that this process has if p is sharded.

    `source`: the rank whose value counts; None if all have the same, so that nothing is sent.
    """
    if is_sharded(p):
        from torch.distributed.tensor import distribute_tensor  # loaded already where there are sharded parameters

        value = distribute_tensor(value, p.device_mesh, p.placements, src_data_rank=source)
    p.detach().copy_(value)


def check_layout(p: Tensor, name: str, layout: str) -> None:
    """TypeError or ValueError if p cannot hold an orthonormal matrix."""
    check_not_flat(p, name)
    if p.layout != torch.strided:
        raise TypeError(f"{name} is sparse ({p.layout}); it must be dense, pass {name}.to_dense()")
    if p.dtype not in DTYPES:
        raise TypeError(f"{name} has dtype {p.dtype}; it must be float16, bfloat16, float32 or float64")
    if p.is_meta:
        raise ValueError(
            f"{name} is on the meta device and has no values; type module.to_empty(device='cpu') and then "
            "nearkin.orthogonal.orthogonal_(module, name)"
        )
    least = 3 if layout == "convolution" else 2
    if p.ndim < least or p.numel() == 0:
        need = "a kernel (C_out, C_in, ...)" if least == 3 else "a matrix or a batch of matrices (..., d, k)"
        raise ValueError(
            f"{name} has shape {tuple(p.shape)}; with layout={layout!r} it must be {need}. "
            "Give other parameters, such as biases, to another optimizer"
        )


def batches_by_shape(
    active: Sequence[tuple[Record, Tensor]],  # (group, parameter)
    states: Mapping[Tensor, Record],
) -> list[tuple[Record, list[Tensor]]]:
    """Parameters that move as one batch: alike in group, shape, type, device, step and state; large ones move alone."""
    if len(active) < 2:
        return [(group, [p]) for group, p in active]
    lists: dict[tuple[object, ...], tuple[Record, list[Tensor]]] = {}
    for group, p in active:
        small = p.dtype in (torch.float32, torch.float64) and p.shape[-1] * p.shape[-2] <= BATCHED
        state = states.get(p, {})
        whole = (id(group), p.shape, p.dtype, p.device, state.get("step", 0), *state)
        key = whole if small and group.get("foreach") else (id(p),)
        lists.setdefault(key, (group, []))[1].append(p)
    return list(lists.values())


def stacked(tensors: Sequence[Tensor], layout: str) -> Tensor:
    """The tensors of one shape as one contiguous batch of tall matrices (b, d, k)."""
    whole = torch.stack([T.detach() for T in tensors])
    return as_tall(whole.flatten(2) if layout == "convolution" else whole).contiguous()


def stacked_state(states: Sequence[Record]) -> Record:
    """One state for the batch: tensors of matrices (b, d, k) or of numbers (b,) concatenated, the rest once."""
    joint = dict(states[0])
    for name, value in states[0].items():
        if isinstance(value, Tensor):
            whole = torch.stack([state[name] for state in states])
            joint[name] = whole.flatten(0, max(whole.ndim - 3, 1 if whole.ndim == 2 else 0))
    return joint


def unstacked_state(joint: Record, states: Sequence[Record], b: int, *, squeezed: bool) -> None:
    """Copy into each state its part for b matrices; `squeezed`: the state of a single matrix has no batch axis."""
    for name, value in joint.items():
        if not isinstance(value, Tensor):
            for state in states:
                state[name] = value
            continue
        shape = value.shape[1:] if squeezed and b == 1 and value.ndim == 3 else (b, *value.shape[1:])
        parts = value.reshape(len(states), *shape).unbind()
        if name in states[0]:
            _copy([state[name] for state in states], parts)
            continue
        for state, part in zip(states, parts, strict=True):
            state[name] = part.clone()  # each saves its own memory and not that of the batch


def _copy(targets: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Copy each value into its target, in one call."""
    torch._foreach_copy_(list(targets), list(values))  # pyright: ignore[reportPrivateImportUsage]


@dataclass(frozen=True)
class Adam:
    """Adam's two moments, for `momentum=` of the optimizers: averages of gradients over about 1 / (1 - beta) steps.

    Parameters
    ----------
    betas: two numbers in [0, 1), for the gradient and for its square.
    eps: keeps the division from zero.

    Attributes
    ----------
    betas, eps: as given.

    References
    ----------
    Kingma & Ba (2015), Adam: a method for stochastic optimization.

    Examples
    --------
    >>> import torch
    >>> X = torch.nn.Parameter(torch.eye(4))
    >>> nk.orthogonal.RiemannianDescent([X], lr=0.1, momentum=nk.orthogonal.Adam()).param_groups[0]["betas"]
    (0.9, 0.99)
    """

    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8


class AbstractOrthogonalOptimizer(torch.optim.Optimizer, ABC):
    """A torch optimizer whose parameters stay on O(d) or St(d, k): direction x selection x retraction.

    Subclasses move one batch of tall matrices (`_move`) and check their own options (`_check_group`). Here a parameter
    is checked, seen as tall float32/float64 matrices, moved, stabilized and written back. 16-bit parameters keep a
    float32 copy in the state, because rounding each step to 16 bits would leave the manifold.
    """

    _squeezed = False  # whether a single matrix moves without its axis of batches, as products of matrices are faster

    def __init__(self, params: ParamsT, defaults: Record, random_state: Seed, callback: Callback | None) -> None:
        source = torch_generator(random_state)
        self._generator = torch.Generator(source.device)
        self.callback = callback
        self._steps = 0
        if not isinstance(random_state, Integral):
            random_state = int(torch.randint(2**31, (), generator=source, device=source.device))
        # "betas" is there only if it is given: torch's OneCycleLR and CyclicLR turn the first of the two up and down
        # where they find the name, and the momentum where they do not.
        super().__init__(params, {**SHARED, "random_state": int(random_state), **_flat(defaults)})

    @staticmethod
    def profile_hook_step(func: Callable[P, R]) -> Callable[P, R]:
        """torch's wrapper of `step` for profilers and hooks, called only if there is one: it takes 6 microseconds, a
        third of a step by random pairs at d = 64."""
        hooked = torch.optim.Optimizer.profile_hook_step(func)

        @wraps(func)
        def step(*arguments: P.args, **named: P.kwargs) -> R:
            own = cast(torch.optim.Optimizer, arguments[0])
            hooks = own._optimizer_step_pre_hooks or own._optimizer_step_post_hooks or _GLOBAL_PRE or _GLOBAL_POST
            return (hooked if hooks or _profiler_enabled() else func)(*arguments, **named)

        return step

    def add_param_group(self, param_group: Record) -> None:
        """Add parameters with other options; each is checked to be orthogonal now."""
        super().add_param_group(_flat(param_group))
        group = self.param_groups[-1]
        try:
            _check_common(group)
            for number, p in enumerate(group["params"]):
                name = f"parameter {number} of group {len(self.param_groups) - 1}"
                check_layout(p, name, group["layout"])
                X = as_tall(whole(p), group["layout"])
                _check_start(X, p.dtype, name)
                self._check_group(group, X)
        except Exception:
            self.param_groups.pop()
            raise

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Move every parameter that has a gradient; returns the closure's loss.

        ValueError if a gradient is not finite, or so large that products with it are not: then no parameter of this
        step is changed. The group's `check_finite` is how often gradients are checked.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = [_with_number(group) for group in self.param_groups]
        active: list[tuple[Record, Tensor]] = [
            (group, p) for group in groups for p in group["params"] if p.grad is not None
        ]
        for group in groups:
            _check_scheduled(group)
        twins: dict[Tensor, Tensor] = {p: _twin(p) for _, p in active if is_sharded(p)}
        if twins:
            active = [(group, twins.get(p, p)) for group, p in active]
            self.state.update({twin: self.state[p] for p, twin in twins.items()})
        try:
            self._step_active(active)
        finally:
            for p, twin in twins.items():
                write_whole(p, twin)
                del self.state[twin]
        self._steps += 1
        if self.callback is not None:
            self.callback(self._steps, _record(active, loss))
        return loss

    def _step_active(self, active: list[tuple[Record, Tensor]]) -> None:
        if len(active) != 1:
            check_gradients(active, self._steps + 1)
        left = [(group, p) for group, p in active if not self._compiled_step(p, group)]
        if left and len(active) == 1:  # else done above; a compiled step tests its gradient on the way
            check_gradients(active, self._steps + 1)
        for group, params in batches_by_shape(left, self.state):
            with without_autocast(params[0]):
                self._step_batch(params, group)

    def _drawing(self, group: Record, state: Record) -> torch.Generator:
        """The generator for one matrix, seeded by its step: it draws as it would alone, and is in no checkpoint."""
        return self._generator.manual_seed(seed_of_step(group["random_state"], state["step"]))

    def _compiled_step(self, p: Tensor, group: Record) -> bool:
        """Move p by one compiled call, which tests its gradient; False, and no change, if there is none for p or the
        test failed."""
        G, state = p.grad, self.state[p]
        if G is None or G.layout != torch.strided or G.dtype != p.dtype or G.requires_grad or not for_kernels(p):
            return False
        if torch.is_autocast_enabled("cpu"):
            return False
        x, g = p.detach().numpy(), (-G if group["maximize"] else G).numpy()
        X, layout = as_tall(x, group["layout"]), group["layout"]
        state["step"] = state.get("step", 0) + 1
        if self._move_compiled(X, as_tall(g, layout), group, state):
            if x.ndim > 3 and not np.may_share_memory(X, x):  # a kernel whose channels are last in memory
                p.detach().copy_(from_tall(torch.from_numpy(X), p, layout))
            increment_version(p)
            return True
        state["step"] -= 1
        return False

    def _move_compiled(self, X: np.ndarray, G: np.ndarray, group: Record, state: Record) -> bool:
        """`_move` in place by compiled loops, of X and G (b, d, k), d >= k, of any strides."""
        del X, G, group, state
        return False

    @torch.no_grad()
    def _step_batch(self, params: list[Tensor], group: Record) -> None:
        """Move parameters of one shape at once; a single one in its own memory where that is possible."""
        p, layout, states = params[0], group["layout"], [self.state[p] for p in params]
        if len(params) == 1:
            state, G = states[0], as_tall(p.grad, layout)  # type: ignore[arg-type]
            X = _working_copy(p, state, layout).contiguous()
            G = G.to(X.dtype).contiguous()
        else:
            state, X = stacked_state(states), stacked(params, layout)
            G = stacked([p.grad for p in params if p.grad is not None], layout)
        state["step"] = state.get("step", 0) + 1
        G = -G if group["maximize"] else G
        if self._squeezed and len(X) == 1:
            moved = self._move(X[0], G[0], group, state)[None]
        else:
            moved = self._move(X, G, group, state)
        if group["stabilize_every"] and state["step"] % group["stabilize_every"] == 0:
            moved = newton_schulz(moved)
        if len(params) > 1:
            unstacked_state(state, states, len(X) // len(params), squeezed=self._squeezed)
            shape = p.flatten(1).shape if layout == "convolution" else p.shape
            matrices = moved if shape[-2] >= shape[-1] else moved.mT
            _copy(params, matrices.reshape(len(params), *p.shape).unbind())
            return
        if "master" in state:
            state["master"].copy_(moved)
        if moved.data_ptr() != p.data_ptr():
            p.copy_(from_tall(moved, p, layout))

    @abstractmethod
    def _move(self, X: Tensor, G: Tensor, group: Record, state: Record) -> Tensor:
        """Return the next point (b, d, k), or (d, k) if `_squeezed`, from X, which may be changed in place, and the
        gradient G, which may not."""

    @abstractmethod
    def _check_group(self, group: Record, X: Tensor) -> None:
        """Raise ValueError if the group's options do not fit its parameter, seen as tall matrices X (b, d, k)."""

    def load_state_dict(self, state_dict: Record) -> None:
        """Load a `state_dict`: training continues bit for bit (on the CPU) as without the interruption.

        State of another precision is converted to this optimizer's. ValueError if another package wrote it.
        """
        if not all("random_state" in group for group in state_dict.get("param_groups", [{}])):
            raise ValueError(
                "state_dict has a group without 'random_state'; it must come from state_dict() of one of "
                "nearkin.orthogonal's optimizers"
            )
        super().load_state_dict(state_dict)
        saved_ids = [i for group in state_dict["param_groups"] for i in group["params"]]
        params = [p for group in self.param_groups for p in group["params"]]
        for saved, p in zip(saved_ids, params, strict=True):
            for name, value in state_dict["state"].get(saved, {}).items():
                if isinstance(value, Tensor):  # torch would round a 16-bit parameter's float32 state to 16 bits
                    dtype = working_dtype(p) if value.is_floating_point() else value.dtype
                    self.state[p][name] = value.to(device=p.device, dtype=dtype, copy=True)
            if p.dtype == working_dtype(p):
                self.state[p].pop("master", None)  # saved by a 16-bit parameter; this one needs no copy
        self._steps = max((state.get("step", 0) for state in self.state.values()), default=0)

    def __getstate__(self) -> Record:
        """State for `copy.deepcopy` and pickle: torch's, the generator, the callback and the counts."""
        return super().__getstate__() | {name: vars(self)[name] for name in ("_generator", "callback", "_steps")}


def seed_of_step(random_state: int, step: int) -> int:
    """Return the 32 bits that seed a step's draws; none comes again for 2^32 steps, as the factor is odd."""
    return (random_state + 0x9E3779B1 * step) % 2**32


def _with_number(group: Record) -> Record:
    """The group, or a copy in which a learning rate that is a tensor is a number; CUDA graphs keep the tensor."""
    lr = group["lr"]
    return {**group, "lr": lr.item()} if isinstance(lr, Tensor) and not group.get("capturable") else group


def _twin(p: Tensor) -> Tensor:
    """The whole matrix of a sharded parameter with its whole gradient; every process moves it alike."""
    twin = whole(p)
    twin.grad = None if p.grad is None else whole(p.grad)
    return twin


def first_moment(G: Tensor, group: Record, state: Record) -> Tensor:
    """Return the direction matrix M (b, d, k): G itself, heavy-ball momentum, or Adam's average of gradients."""
    if group.get("betas") is None and not group["momentum"]:
        return G
    if "momentum" not in state:
        state["momentum"] = torch.zeros_like(G)
    if group.get("betas") is None:
        return state["momentum"].mul_(group["momentum"]).add_(G)
    beta = group["betas"][0]
    return state["momentum"].mul_(beta).add_(G, alpha=1 - beta)


def step_length(
    entries: Sequence[Tensor],  # for each of the b matrices, the raw gradient's skew entries
    group: Record,
    state: Record,
) -> Tensor | float:
    """Return lr, or Adam's lr / (sqrt(v) + eps) (b,) with both bias corrections; v averages the entries' squares."""
    if group.get("betas") is None:
        return group["lr"]
    beta1, beta2 = group["betas"]
    mean_square = torch.stack([raw.square().mean() for raw in entries])
    v = state.setdefault("second_moment", torch.zeros_like(mean_square))
    v.mul_(beta2).add_(mean_square, alpha=1 - beta2)
    unbiased = v / (1 - beta2 ** state["step"])
    return group["lr"] / (1 - beta1 ** state["step"]) / (unbiased.sqrt() + group["eps"])


def by_angle(tangent: Tensor, group: Record, state: Record) -> Tensor:
    """Return the factors (..., 1, 1) of gradients that make lr the radians of the longest one's step.

    ||tangent||_F / sqrt(k), tangent (..., d, k) the raw gradient's part G - X G^T X, is what it turns a column by (root
    mean square). The longest so far counts, and not the latest, so that steps shorten near a minimum. Of three in a row
    the median counts, so that no single batch shortens later steps; a gradient above the longest turns by lr. The heavy
    ball's sum of equal gradients counts as one; with momentum 1 it has no end.
    """
    sizes = torch.linalg.vector_norm(tangent, dim=(-2, -1), keepdim=True, dtype=torch.float64).to(tangent.dtype)
    lengths = state.setdefault("lengths", torch.zeros_like(sizes).repeat_interleave(3, -1))  # the longest, latest two
    latest = torch.cat([lengths[..., 1:], sizes / tangent.shape[-1] ** 0.5], -1)
    longest = torch.maximum(lengths[..., :1], latest.median(-1, keepdim=True).values)
    lengths.copy_(torch.cat([longest, latest[..., 1:]], -1))
    return ((1 - group["momentum"] or 1.0) / torch.maximum(longest, latest[..., 2:])).nan_to_num(posinf=0.0)


def _flat(options: Record) -> Record:
    """The options, Adam's spread out: schedulers change plain values, and `state_dict` saves them without pickle."""
    adam = options.get("momentum")
    return {**options, "momentum": 0.0, "betas": adam.betas, "eps": adam.eps} if isinstance(adam, Adam) else options


def _check_common(group: Record) -> None:
    if isinstance(lr := group["lr"], Tensor) and (lr.numel() != 1 or lr.is_meta):
        raise ValueError(f"lr is a tensor of shape {tuple(lr.shape)} on {lr.device}; it must hold one number")
    _check_scheduled(_with_number(group | {"capturable": False}))
    check_real(group["eps"], "eps", above=0)
    check_integer(group["stabilize_every"], "stabilize_every", low=0)
    check_choice(group["layout"], "layout", LAYOUTS)
    if not isinstance(group["check_finite"], bool) and not _every(group["check_finite"]):
        raise ValueError(
            f"check_finite is {group['check_finite']!r}; it must be True, False or 'every N', such as 'every 100'"
        )
    betas = group.get("betas")
    if betas is not None and (not isinstance(betas, tuple | list) or len(betas) != 2):
        raise ValueError(f"betas is {betas!r}; it must be None or two numbers such as (0.9, 0.99)")
    for number, beta in enumerate(betas or ()):
        check_real(beta, f"betas[{number}]", low=0)
        if beta >= 1:
            raise ValueError(f"betas[{number}] is {beta!r}; it must be less than 1")


def _check_scheduled(group: Record) -> None:
    """Check the values that schedulers change: lr, a tensor only if it is not to be read, and the momentum."""
    if not isinstance(group["lr"], Tensor):
        check_real(group["lr"], "lr", low=0)
    check_real(group["momentum"], "momentum", low=0, high=1)
    if group["momentum"] and group.get("betas") is not None:
        raise ValueError(f"momentum is {group['momentum']!r} and betas is {group['betas']!r}; give one of them")


def _check_start(X: Tensor, dtype: torch.dtype, name: str) -> None:
    if not bool(torch.isfinite(X).all()):
        raise ValueError(f"{name} contains NaN or infinity; make it by nearkin.orthogonal.orthogonal_(module, name)")
    if not is_orthogonal(X.to(dtype), layout="matrix"):
        raise ValueError(
            f"{name}, as matrices of shape {tuple(X.shape[1:])}, is not orthogonal: ||X^T X - I||_F / sqrt(k) is "
            f"{orthogonality_error(X):.3g}; initialise it by nearkin.orthogonal.orthogonal_(module, name), and give a "
            "convolution kernel's group layout='convolution'"
        )


def _working_copy(p: Tensor, state: Record, layout: str) -> Tensor:
    """Return p as tall matrices in float32 or float64: p's own memory where that is possible."""
    X = as_tall(p.detach(), layout)
    if p.dtype in (torch.float32, torch.float64):
        return X
    master = state.get("master")
    # a parameter changed from outside since the last step counts, not our copy of it
    if master is None or not torch.equal(master.to(p.dtype), X):
        state["master"] = master = nearest_orthogonal(X.float()).contiguous()
    return master.clone()


def _record(active: list[tuple[Record, Tensor]], loss: Any) -> dict[str, float]:
    objective = {} if loss is None else {"objective": float(loss.detach() if isinstance(loss, Tensor) else loss)}
    return {
        **objective,
        "orthogonality_error": max((orthogonality_error(as_tall(p, g["layout"])) for g, p in active), default=0.0),
        "gradient_norm": sum(float(p.grad.float().square().sum()) for _, p in active if p.grad is not None) ** 0.5,
    }


def _every(check_finite: object) -> int:
    """Return the N of "every N", 0 for anything else."""
    found = re.fullmatch(r"every (\d+)", check_finite) if isinstance(check_finite, str) else None
    return int(found[1]) if found else 0


def check_gradients(active: Sequence[tuple[Record, Tensor]], step: int) -> None:
    """ValueError or TypeError for the first gradient that allows no step; one common norm if all are fine."""
    due: list[tuple[int, Tensor]] = []
    for number, (group, p) in enumerate(active):
        if p.grad is not None and p.grad.layout != torch.strided:
            raise TypeError(f"the gradient of parameter {number} is sparse ({p.grad.layout}); it must be dense")
        often = group.get("check_finite", True)
        if often if isinstance(often, bool) else step % _every(often) == 0:
            due.append((number, p))
    if len(due) > 1 and math.isfinite(get_total_norm([p.grad for _, p in due if p.grad is not None])):
        return
    for number, p in due:
        if p.grad is not None and not math.isfinite(torch.linalg.vector_norm(p.grad, dtype=working_dtype(p))):
            _refuse(p.grad, number, working_dtype(p))


def _refuse(grad: Tensor, number: int, dtype: torch.dtype) -> None:
    """ValueError for a gradient whose norm is not finite, unless only the sum of its squares is too large."""
    if not bool(torch.isfinite(grad).all()):
        raise ValueError(
            f"the gradient of parameter {number}, shape {tuple(grad.shape)}, contains NaN or infinity; "
            "no parameter was changed. Lower lr or skip the batch"
        )
    largest = float(grad.abs().amax())
    norm = largest * float(torch.linalg.vector_norm(grad.double() / largest))
    if not norm <= torch.finfo(dtype).max / 8:  # entries of G X^T - X G^T are at most twice the norm
        raise ValueError(
            f"the gradient of parameter {number}, shape {tuple(grad.shape)}, is as large as {largest:.3g}: products "
            f"with it overflow {dtype}; no parameter was changed. Scale the loss or clip the gradient"
        )
