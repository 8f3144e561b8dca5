"""Gradients that no step can be made from, found with one look at all of them, and only as often as is asked for."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from nearkin._types import Record
from nearkin.orthogonal.layout import working_dtype

_EVERY = "every "


def check_finite_option(value: object) -> None:
    """ValueError unless the value is True, False or "every N" with an N of at least 1."""
    if isinstance(value, bool) or (isinstance(value, str) and value.startswith(_EVERY) and _number(value) >= 1):
        return
    raise ValueError(f"check_finite is {value!r}; it must be True, False or 'every N', such as 'every 100'")


def _number(value: str) -> int:
    digits = value.removeprefix(_EVERY)
    return int(digits) if digits.isdecimal() else 0


def is_due(check_finite: bool | str, step: int) -> bool:
    """Whether gradients are looked at in this step, counted from 1."""
    return step % _number(check_finite) == 0 if isinstance(check_finite, str) else check_finite


def check_gradients(active: Sequence[tuple[Record, Tensor]], step: int) -> None:
    """ValueError or TypeError for the first gradient that no step can be made from; one test where all are fine."""
    due: list[tuple[int, Tensor]] = []
    for number, (group, p) in enumerate(active):
        if p.grad is not None and p.grad.layout != torch.strided:
            raise TypeError(f"the gradient of parameter {number} is sparse ({p.grad.layout}); it must be dense")
        if is_due(group.get("check_finite", True), step):
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
