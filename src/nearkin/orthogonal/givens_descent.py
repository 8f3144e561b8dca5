"""Givens coordinate descent: disjoint pairs of axes rotate, each by its directional derivative (GCD, Algorithm 2)."""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from nearkin._check import check_choice, check_integer
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.linalg.blocks import skew_blocks, turn_blocks
from nearkin.linalg.exponential import expm1
from nearkin.linalg.givens import descend_in_order, rotate_rows
from nearkin.linalg.skew import for_kernels, left_skew, left_skew_entries
from nearkin.orthogonal.matching import (
    SELECTIONS,
    heavy_matchings,
    most_matchings,
    random_matchings,
)
from nearkin.orthogonal.optimizer import (
    AbstractOrthogonalOptimizer,
    Adam,
    angles,
    first_moment,
    step_length,
)

SIDES = ("auto", "left", "right")


class GivensDescent(AbstractOrthogonalOptimizer):
    """X <- X R_{i1,j1}(theta_1) ... R_{im,jm}(theta_m) for disjoint pairs of axes (GCD, Algorithm 2).

    theta_ij = lr * Omega_ij, the descent along the pair's directional derivative. GCD divides that derivative by
    sqrt(2) (its g_ij), so its lambda is lr * sqrt(2). Square parameters are rotated from the right (columns), tall ones
    from the left (rows). Rotations are exact and written in Rutishauser's stable form: det stays +1 and the drift after
    1e5 float32 steps is about 1e-5.

    Parameters
    ----------
    params: parameters or groups of them: matrices (..., d, k), orthonormal columns (rows, if d < k).
    lr: step length, > 0.
    selection: "random" (GCD-R, O(d^2) per step with no product at all), "greedy" (GCD-G, one d^3 product),
        "steepest" (GCD-S, the blossom algorithm: a slow upper bound).
    n_matchings: number of edge-disjoint matchings that rotate, one after the other, from one gradient. 1 is the paper's
        method; d - 1 (d for odd d) is a full sweep, to first order the exact exponential step.
    side: "right", "left", or "auto": as above, but "random" rotates rows of square parameters too. It is the same
        method in the other frame, and rows are contiguous in memory: 12 to 16 times faster. Without momentum it rotates
        columns where these are contiguous, as in the Q of `torch.linalg.qr`.
    angle: "gradient", or "exact": lr times the angle that minimises the linearised objective <G, X> along the pair's
        circle; with lr=1 every pair is solved exactly when the objective is linear (Procrustes), and a concave
        objective (PCA, sorting) decreases in every step without a step length to choose.
    momentum: heavy ball, in [0, 1]; the buffer is rotated with the point; or `Adam()` for the Adam-like step, which
        has one second moment per matrix.
    maximize: ascend instead.
    stabilize_every: number of steps after which one Newton-Schulz step removes rounding errors; 0 for never.
    layout: "matrix", or "convolution" for kernels (C_out, C_in, ...), used as (window * C_in, C_out) matrices.
    random_state: seed, NumPy or torch generator of the selection. The default is a fixed seed, so that the replicas of
        data-parallel training rotate the same pairs.
    callback: called after each step, counted from 1, with a record of "orthogonality_error", "gradient_norm" and, if
        `step` was given a closure, its value as "objective".

    Two options of `RiemannianDescent` are read from groups: `foreach` and `check_finite`, for example
    `GivensDescent([{"params": params, "check_finite": False}], lr)`.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> X = torch.nn.Parameter(torch.eye(4))
    >>> B = torch.eye(4)[[1, 0, 3, 2]] * torch.tensor([1.0, -1, 1, -1])
    >>> optimizer = nk.orthogonal.GivensDescent([X], lr=0.2, selection="greedy")
    >>> for _ in range(100):
    ...     optimizer.zero_grad()
    ...     loss = -((X + 0.1) * B).sum()
    ...     loss.backward()
    ...     _ = optimizer.step()
    >>> bool(torch.allclose(X, B, atol=1e-3)), nk.orthogonal.is_orthogonal(X, 1e-6)
    (True, True)
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float,
        selection: str = "greedy",
        *,
        n_matchings: int = 1,
        side: str = "auto",
        angle: str = "gradient",
        momentum: float | Adam = 0.0,
        maximize: bool = False,
        stabilize_every: int = 0,
        layout: str = "matrix",
        random_state: Seed = 0,
        callback: Callback | None = None,
    ) -> None:
        shared = {"lr": lr, "momentum": momentum, "maximize": maximize, "stabilize_every": stabilize_every}
        own = {"layout": layout, "selection": selection, "n_matchings": n_matchings, "side": side, "angle": angle}
        super().__init__(params, shared | own, random_state, callback)

    def _check_group(self, group: Record, X: Tensor) -> None:
        check_choice(group["selection"], "selection", SELECTIONS)
        check_choice(group["side"], "side", SIDES)
        check_choice(group["angle"], "angle", ("gradient", "exact"))
        d, k = X.shape[-2:]
        if group["side"] == "right" and d != k:
            raise ValueError(f"side is 'right' for a matrix of shape {(d, k)}; it must be square, type side='left'")
        if group["angle"] == "exact" and (group["momentum"] or group.get("betas")):
            raise ValueError("angle is 'exact' with momentum or betas; it needs the gradient itself, give neither")
        if check_integer(group["n_matchings"], "n_matchings", low=1) > most_matchings(d):
            raise ValueError(
                f"n_matchings is {group['n_matchings']}; it must be at most {most_matchings(d)}, the number of "
                f"edge-disjoint matchings of {d} axes"
            )

    def _move(self, X: Tensor, G: Tensor, group: Record, state: Record) -> Tensor:
        M = first_moment(G, group, state)
        if M is not G and group["angle"] == "exact":
            raise ValueError(
                "angle is 'exact' and momentum was set after the optimizer was made; give the scheduler "
                "cycle_momentum=False"
            )
        # the columns of X are the rows of its transpose, which turn in order of memory once it is laid out so
        columns = _turns_columns(X, group)
        rows, gradient, moment = (T.mT.contiguous() if columns else T.contiguous() for T in (X, G, M))
        moment = gradient if M is G else moment
        turn_rows(
            rows, gradient, moment, self._draw(rows, moment, group), group, state, exact=group["angle"] == "exact"
        )
        if M is not G and moment is not M:  # a copy has turned
            M.copy_(moment.mT if columns else moment)
        return rows.mT if columns else rows

    def _draw(self, X: Tensor, M: Tensor, group: Record) -> list[list[torch.Tensor]]:
        """The matchings of each matrix."""
        count, selection = group["n_matchings"], group["selection"]
        if selection == "random":
            return [random_matchings(X.shape[1], count, self.generator) for _ in X]
        return [heavy_matchings(W, count, selection) for W in left_skew(X, M).abs()]  # one product for the batch


def _turns_columns(X: Tensor, group: Record) -> bool:
    if group["side"] != "auto":
        return group["side"] == "right"
    # a step by random pairs costs no product, so that what is in order in memory turns; with a moment always the rows
    by_columns = not (X.is_contiguous() or group["momentum"] or group.get("betas"))
    return X.shape[-2] == X.shape[-1] and (group["selection"] != "random" or by_columns)


def turn_rows(
    X: Tensor,  # (b, d, k), contiguous, changed in place
    G: Tensor,  # (b, d, k), contiguous
    M: Tensor,  # (b, d, k): G, or its moment, which is rotated with X
    drawn: Sequence[Sequence[Tensor]],  # for each matrix rounds of disjoint components (l, s)
    group: Record,
    state: Record,
    *,
    scales: Sequence[float] = (),  # factors of the entries of each matrix; default 1
    exact: bool = False,  # of pairs: by the angle that minimises <G, X>
) -> None:
    """X <- exp(-lr Omega_c) X for the blocks Omega_c of all matrices' components, those of a round in one call."""
    (d, k), s, rounds = X.shape[1:], drawn[0][0].shape[1], len(drawn[0])
    rows, gradient, moment = (T.view(-1, k) for T in (X, G, M))  # of all matrices, in their own memory
    components = torch.cat([part + n * d for n, own in enumerate(drawn) for part in own]).to(X.device)
    if s == 2 and M is G and rounds == 1 and not exact and len(set(scales)) <= 1 and for_kernels(X):
        length = group["lr"] * (scales[0] if scales else 1.0)
        if not descend_in_order(rows.numpy(), gradient.numpy(), components.numpy().reshape(-1), length):
            raise ValueError(f"length is {length}; times the gradient's entries it is no finite angle, take less")
        return
    entries, turn = (left_skew_entries, rotate_rows) if s == 2 else (skew_blocks, turn_blocks)
    counts = [sum(len(part) for part in own) for own in drawn]

    def spread(numbers: Sequence[float] | Tensor) -> Tensor:
        """A number of each matrix, for each of its components."""
        of_matrix = torch.as_tensor(numbers, dtype=X.dtype, device=X.device)
        # with the total given, the host does not wait for the device
        repeated = of_matrix.repeat_interleave(torch.tensor(counts, device=X.device), output_size=sum(counts))
        return repeated if s == 2 else repeated[:, None, None]

    factor = spread(scales) if scales else 1.0
    Omega = entries(rows, moment, components) * factor
    raw = Omega if group.get("betas") is None else entries(rows, gradient, components) * factor
    if exact:
        Omega = _circle_minimum(Omega, (rows * gradient).sum(1), components)
    length = step_length(raw.split(counts), group, state)
    length = spread(length) if isinstance(length, Tensor) else length
    turns = angles(Omega, length) if s == 2 else expm1(-(Omega * length))
    sizes = [len(part) for own in drawn for part in own]
    pieces = list(zip(components.split(sizes), turns.split(sizes), strict=True))
    for number in range(rounds):
        parts, part_turns = (torch.cat(found) for found in zip(*pieces[number::rounds], strict=True))
        for moved in (rows,) if M is G else (rows, moment):
            turn(moved, parts, part_turns)


def _circle_minimum(omega: Tensor, inner: Tensor, pairs: Tensor) -> Tensor:
    """Return theta that minimise cos(theta) (a_i + a_j) - sin(theta) Omega_ij, `inner` (d,) being the a."""
    cosine = inner[pairs[:, 0]] + inner[pairs[:, 1]]
    return torch.atan2(omega, -cosine)
