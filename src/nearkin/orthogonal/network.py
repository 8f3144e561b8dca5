"""One optimizer for a whole network: the recommended one for orthonormal matrices, any other for the rest."""

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import LBFGS, Optimizer

from nearkin._check import check_choice
from nearkin._fields import counted
from nearkin._types import Record
from nearkin.orthogonal.diagnostics import is_orthogonal
from nearkin.orthogonal.givens_descent import GivensDescent
from nearkin.orthogonal.optimizer import AbstractOrthogonalOptimizer, check_not_flat, whole
from nearkin.orthogonal.parametrization import layout_of
from nearkin.orthogonal.riemannian_descent import RiemannianDescent
from nearkin.orthogonal.stochastic_flow import StochasticFlow

METHODS: dict[str, Any] = {"auto": RiemannianDescent, "flow": StochasticFlow, "givens": GivensDescent}
METHODS["riemannian"] = RiemannianDescent
STARTS: dict[str, Record] = {"flow": {"component_size": "d/log d", "scale": "none"}, "givens": {}}
TORCH_OPTIONS = {  # of torch's optimizers, and what to type here
    "weight_decay": "orthonormal matrices have a fixed norm; give it to the optimizer of the other parameters",
    **dict.fromkeys(("betas", "eps", "amsgrad"), "type momentum=nk.orthogonal.Adam(betas=(0.9, 0.99))"),
    **dict.fromkeys(("nesterov", "dampening"), "momentum=0.9 is the plain heavy ball"),
}
OTHERS = "type others=lambda rest: torch.optim.AdamW(rest, lr=1e-3)"


class MixedOptimizer(Optimizer):
    """Several optimizers as one: for trainers, schedulers and gradient scalers that take a single optimizer.

    Its `param_groups` are the dicts of the optimizers inside, in their order, so schedulers change all of them.
    Schedulers that cycle the momentum (`OneCycleLR`, `CyclicLR`) set "momentum" in groups that have one and the first
    of the "betas" in the others. `step` calls a closure once; optimizers on the manifold go first, so that an invalid
    gradient changes no parameter.

    Parameters
    ----------
    optimizers: at least one, without common parameters. LBFGS, which calls the closure itself, is a TypeError.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
    >>> weight = nk.orthogonal.orthogonal_(net[0], "weight")
    >>> optimizer = nk.orthogonal.MixedOptimizer(
    ...     nk.orthogonal.RiemannianDescent([weight], lr=0.1), torch.optim.AdamW([net[0].bias, *net[1].parameters()])
    ... )
    >>> net(torch.ones(4, 8)).square().sum().backward()
    >>> optimizer.step()
    >>> nk.orthogonal.is_orthogonal(weight)
    True
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        if not optimizers:
            raise ValueError("optimizers is empty; give at least one, such as RiemannianDescent([weight], lr=0.1)")
        for number, optimizer in enumerate(optimizers):
            if not isinstance(optimizer, Optimizer) or isinstance(optimizer, LBFGS | MixedOptimizer):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(
                    f"optimizers[{number}] is a {type(optimizer).__name__}; it must be a torch optimizer other than "
                    "LBFGS and MixedOptimizer, such as torch.optim.AdamW(rest, lr=1e-3)"
                )
        self.optimizers = optimizers
        groups = self._groups()
        by_betas = all(group.get("betas") is not None for group in groups)
        super().__init__(groups, {"betas": groups[0]["betas"]} if by_betas else {"momentum": 0.0})
        self.state: defaultdict[Tensor, Any] = _States(optimizers)  # type: ignore[assignment]  # a dict in all that torch and trainers do with it

    def _groups(self) -> list[Record]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def add_param_group(self, param_group: Record) -> None:
        """Accept a group that was added to one of `optimizers` before; ValueError for any other."""
        if not any(param_group is group for group in self._groups()):
            raise ValueError(
                "param_group belongs to none of the optimizers inside; add it to the one that shall move it and then "
                "here: type inner = optimizer.optimizers[-1]; inner.add_param_group(group); "
                "optimizer.add_param_group(inner.param_groups[-1])"
            )
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Step all optimizers; returns the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if group.get("betas") is not None and group.get("momentum"):  # set by a scheduler that cycles momenta
                group["betas"] = (group["momentum"], *group["betas"][1:])
                group["momentum"] = 0.0
        for optimizer in sorted(self.optimizers, key=lambda one: not isinstance(one, AbstractOrthogonalOptimizer)):
            optimizer.step()
        return loss

    def load_state_dict(self, state_dict: Record) -> None:
        """Load a result of `state_dict`; ValueError if it comes from another kind of optimizer or another mix."""
        groups = list(state_dict.get("param_groups", []))
        if len(groups) != len(self._groups()):
            raise ValueError(
                f"state_dict has {counted(len(groups), 'group')}; it must come from state_dict() of a MixedOptimizer "
                f"with {len(self._groups())}"
            )
        for optimizer in self.optimizers:
            count = len(optimizer.param_groups)
            mine, groups = groups[:count], groups[count:]
            numbers = [number for group in mine for number in group["params"]]
            state = {number: state_dict["state"][number] for number in numbers if number in state_dict["state"]}
            optimizer.load_state_dict({"state": state, "param_groups": mine})
        self.param_groups: list[Record] = self._groups()  # torch has made new dicts

    def __getstate__(self) -> Record:
        """Return what `copy.deepcopy` and pickle keep: the optimizers inside."""
        return {"optimizers": self.optimizers}

    def __setstate__(self, state: Record) -> None:
        """Rebuild from `__getstate__`."""
        self.__init__(*state["optimizers"])


class _States(MutableMapping[Tensor, Any]):
    """The states of several optimizers by parameter, read and written in their own dicts."""

    def __init__(self, optimizers: tuple[Optimizer, ...]) -> None:
        self._optimizers = optimizers

    def _owner(self, p: Tensor) -> MutableMapping[Tensor, Any]:
        for optimizer in self._optimizers:
            if any(p is other for group in optimizer.param_groups for other in group["params"]):
                return optimizer.state
        raise KeyError(p)

    def __getitem__(self, p: Tensor) -> Any:
        return self._owner(p)[p]

    def __setitem__(self, p: Tensor, state: Any) -> None:
        self._owner(p)[p] = state

    def __delitem__(self, p: Tensor) -> None:
        del self._owner(p)[p]

    def __iter__(self) -> Iterator[Tensor]:
        return (p for optimizer in self._optimizers for p in list(optimizer.state))

    def __len__(self) -> int:
        return sum(len(optimizer.state) for optimizer in self._optimizers)


def orthogonal_optimizer(
    params: Any,
    lr: float,
    *,
    method: str = "auto",
    others: Callable[[list[nn.Parameter]], Optimizer] | None = None,
    **options: Any,
) -> AbstractOrthogonalOptimizer | MixedOptimizer:
    """Return an optimizer for orthonormal parameters, chosen by shape and by measured times.

    "auto" is RiemannianDescent with the "auto" retraction: "taylor" for square parameters, "newton-schulz" for others,
    the cheapest steps that follow the whole gradient; thin matrices never form a d x d matrix. docs/benchmarks.md has
    the table of the time to a loss, and the tasks on which POGO's rule is faster.

    Parameters
    ----------
    params: parameters or groups of them, or a module whose matrices are all orthonormal, convolution kernels included
        (each gets its layout). A warning names its vectors, such as biases, which need `others`.
    lr: with "auto" and "riemannian", the radians by which the longest gradient so far turns a column (root mean
        square), >= 0: the objective's scale, the momentum and single spikes of the gradient do not change it. 0.1 suits
        mini-batches, up to 1 whole gradients. With `Adam()`, "flow" (not rescaled: scale="none") and "givens" it is
        that of their classes.
    method: "auto", or "riemannian" (the same for all sizes), "flow" (s = d / log d), "givens" (greedy).
    others: function that makes the optimizer of all other parameters of a network, for example
        `lambda rest: torch.optim.AdamW(rest, lr=1e-3)`. `params` is then the module: its parameters of 2 or more axes
        that are orthonormal now, for example by `orthogonal_`, move on the manifold. Returns one `MixedOptimizer`.
    options: momentum, maximize, stabilize_every, check_finite, random_state, callback and the method's own.

    Returns
    -------
    optimizer: an optimizer on the manifold, or a `MixedOptimizer` with `others`.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> layer = torch.nn.Linear(8, 8)
    >>> weight = nk.orthogonal.orthogonal_(layer, "weight")
    >>> nk.orthogonal.orthogonal_optimizer([weight], lr=0.1).param_groups[0]["retraction"]
    'auto'
    """
    make: Any = METHODS[check_choice(method, "method", METHODS)]
    _check_names(options, make)
    if others is not None:
        if not callable(others):
            raise TypeError(f"others is a {type(others).__name__}; {OTHERS}")
        on_manifold, rest = _split(params)
        first = orthogonal_optimizer(on_manifold, lr, method=method, **options)
        return MixedOptimizer(first, *([others(rest)] if rest else []))
    of_groups = {"by_angle": make is RiemannianDescent, "check_finite": options.pop("check_finite", True)}
    if make is RiemannianDescent:
        options.pop("random_state", None)  # nothing is drawn
    groups = [{**of_groups, **group} for group in _groups_of(params)]
    for group in groups:
        _check_names(group.keys() & (TORCH_OPTIONS.keys() - {"betas", "eps"}), make)
    return make(groups, lr, **STARTS.get(method, {"retraction": "auto"}) | options)


def _check_names(options: Iterable[str], make: type[AbstractOrthogonalOptimizer]) -> None:
    """TypeError for an option that the class lacks, with what to type for those of torch's optimizers."""
    known = [*dict.fromkeys([*signature(make).parameters, "random_state", "check_finite"])]
    for name in options:
        if name not in known:
            what = TORCH_OPTIONS.get(name, f"its options are {', '.join(known[2:])}")
            raise TypeError(f"{name} is no option of {make.__name__}: {what}")


def _groups_of(params: Any) -> list[Record]:
    if isinstance(params, nn.Module):
        groups = _by_layout(_matrices_of(params))
        if not groups:
            raise ValueError(f"params is a {type(params).__name__} without matrices: no parameter has 2 axes or more")
        rest = [name for name, p in params.named_parameters() if p.ndim < 2 and p.requires_grad]
        if rest:
            warnings.warn(f"params: {', '.join(rest)} will not be trained; {OTHERS}", stacklevel=3)
        return groups
    if isinstance(params, Tensor):
        raise TypeError(f"params is a {type(params).__name__}; it must be a module or a list of parameters: [params]")
    params = list(params)
    return [{"params": params}] if params and not isinstance(params[0], dict) else params  # torch refuses an empty list


def _matrices_of(net: nn.Module) -> dict[nn.Parameter, str]:
    """Return the parameters of 2 or more axes with their layouts."""
    layouts: dict[nn.Parameter, str] = {}
    for module in net.modules():
        for name, p in module.named_parameters(recurse=False):
            check_not_flat(p, name)
            if p.ndim >= 2:
                layouts.setdefault(p, layout_of(module))
    return layouts


def _by_layout(layouts: Mapping[nn.Parameter, str]) -> list[Record]:
    """One group of parameters for each layout."""
    names = dict.fromkeys(layouts.values())
    return [{"params": [p for p in layouts if layouts[p] == name], "layout": name} for name in names]


def _split(net: Any) -> tuple[list[Record], list[nn.Parameter]]:
    """The groups of the matrices that are orthonormal, and all other parameters that are trained."""
    if not isinstance(net, nn.Module):
        raise TypeError(
            f"params is a {type(net).__name__}; with others= it must be the module, or type MixedOptimizer("
            "orthogonal_optimizer(matrices, lr), torch.optim.AdamW(rest))"
        )
    matrices = {p: layout for p, layout in _matrices_of(net).items() if p.requires_grad}
    own = {
        p: layout
        for p, layout in matrices.items()
        if p.is_floating_point() and not p.is_meta and is_orthogonal(whole(p), layout=layout)
    }
    if not own:
        raise ValueError(
            f"none of the {len(matrices)} trained matrices of the {type(net).__name__} is orthonormal; before you make "
            "the optimizer, put those that shall stay orthonormal on the manifold: "
            "nearkin.orthogonal.orthogonal_(module, 'weight')"
        )
    return _by_layout(own), [p for p in net.parameters() if p.requires_grad and p not in own]
