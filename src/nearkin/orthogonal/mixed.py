"""One optimizer object for a whole network: matrices on the manifold, everything else by AdamW or whatever is given."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import LBFGS, Optimizer

from nearkin._types import Record
from nearkin.orthogonal.optimizer import AbstractOrthogonalOptimizer


class MixedOptimizer(Optimizer):
    """Several optimizers as one: for trainers, schedulers and gradient scalers that take a single optimizer.

    Its `param_groups` are the very dicts of the optimizers inside, in their order, so schedulers reach all of them.
    Schedulers that cycle the momentum (`OneCycleLR`, `CyclicLR`) set "momentum" in groups that have one and the first
    of the "betas" in the others. `step` calls a closure once; optimizers on the manifold go first, so that a gradient
    which they refuse changes nothing at all.

    Parameters
    ----------
    optimizers: ready optimizers without common parameters. ValueError for none or for common ones, TypeError for what
        is no optimizer, and for LBFGS, which needs to call the closure itself.

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
        self.state = _States(optimizers)  # type: ignore[assignment]  # a dict in all that torch and trainers do with it

    def _groups(self) -> list[Record]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]

    def add_param_group(self, param_group: Record) -> None:
        """Take up a group that was added to one of `optimizers` before; ValueError for any other."""
        if not any(param_group is group for group in self._groups()):
            raise ValueError(
                "param_group belongs to none of the optimizers inside; add it to the one that is to move it and then "
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
            _move_cycled(group)
        for optimizer in sorted(self.optimizers, key=lambda one: not isinstance(one, AbstractOrthogonalOptimizer)):
            optimizer.step()
        return loss

    def state_dict(self) -> Record:
        """State and groups in torch's form, parameters numbered through; "own" has what each optimizer keeps beside."""
        whole: Record = {"state": {}, "param_groups": [], "own": []}
        first = 0
        for optimizer in self.optimizers:
            saved = optimizer.state_dict()
            whole["state"] |= {first + number: state for number, state in saved["state"].items()}
            whole["param_groups"] += [
                {**group, "params": [first + number for number in group["params"]]} for group in saved["param_groups"]
            ]
            whole["own"].append({name: saved[name] for name in saved if name not in ("state", "param_groups")})
            first += sum(len(group["params"]) for group in saved["param_groups"])
        return whole

    def load_state_dict(self, state_dict: Record) -> None:
        """Load what `state_dict` gave; ValueError if it comes from another kind of optimizer or another mix."""
        own, groups = state_dict.get("own"), list(state_dict.get("param_groups", []))
        if own is None or len(own) != len(self.optimizers) or len(groups) != len(self._groups()):
            raise ValueError(
                f"state_dict has {len(groups)} groups of {len(own or [])} optimizers; it must come from state_dict() "
                f"of a MixedOptimizer with {len(self._groups())} groups of {len(self.optimizers)} optimizers"
            )
        for optimizer, rest in zip(self.optimizers, own, strict=True):
            count = len(optimizer.param_groups)
            mine, groups = groups[:count], groups[count:]
            numbers = [number for group in mine for number in group["params"]]
            state = {number: state_dict["state"][number] for number in numbers if number in state_dict["state"]}
            optimizer.load_state_dict({"state": state, "param_groups": mine, **rest})
        self.param_groups = self._groups()  # torch has made new dicts

    def __getstate__(self) -> Record:
        """What `copy.deepcopy` and pickle keep: the optimizers inside."""
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


def _move_cycled(group: Record) -> None:
    """A momentum that a scheduler has set in a group of an Adam becomes the first of its betas."""
    if group.get("betas") is not None and group.get("momentum"):
        group["betas"] = (group["momentum"], *group["betas"][1:])
        group["momentum"] = 0.0
