"""The state of torch optimizers as named tensors, and back."""

import torch
from torch import Tensor

from nearkin._types import Record

_OWN = ("selection", "steps")  # what the optimizers on the manifold keep beside torch's state


def pack_optimizer(optimizer: torch.optim.Optimizer, head: str) -> dict[str, Tensor]:
    """An optimizer's state by name, whole numbers as tensors under `name#`; options are not state."""
    saved = optimizer.state_dict()
    packed = {
        f"{head}{number}.{name}{'#' * isinstance(value, int)}": torch.as_tensor(value)
        for number, entries in saved["state"].items()
        for name, value in entries.items()
        if isinstance(value, Tensor | int)
    }
    own = {name: torch.as_tensor(saved[name]) for name in _OWN if name in saved}
    return packed | {f"{head}{name}#": value for name, value in own.items()}


def unpack_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Tensor], head: str) -> None:
    """Put back what `pack_optimizer` took."""
    entries: dict[int, Record] = {}
    own: Record = {}
    for key, value in state.items():
        if not key.startswith(head):
            continue
        name = key[len(head) :].removesuffix("#")
        kept = int(value) if key.endswith("#") and value.numel() == 1 else value.clone()
        if name in _OWN:
            own[name] = kept
        else:
            number, name = name.split(".", 1)
            entries.setdefault(int(number), {})[name] = kept
    optimizer.load_state_dict({**optimizer.state_dict(), "state": entries, **own})


def pack_optimizers(optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
    """The state of all of them: Adam's first, then the rotation's."""
    return {
        name: value
        for number, optimizer in enumerate(optimizers)
        for name, value in pack_optimizer(optimizer, f"optimizer{number or ''}.").items()
    }


def unpack_optimizers(optimizers: list[torch.optim.Optimizer], state: dict[str, Tensor]) -> None:
    """Put back what `pack_optimizers` took."""
    for number, optimizer in enumerate(optimizers):
        unpack_optimizer(optimizer, state, f"optimizer{number or ''}.")
