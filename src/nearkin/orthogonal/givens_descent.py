"""Givens coordinate descent: disjoint pairs of axes rotate, each by its directional derivative (GCD, Algorithm 2)."""

# pyright: reportConstantRedefinition=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from nearkin._check import check_choice, check_integer
from nearkin._compile import cached_njit
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.linalg.blocks import skew_blocks, turn_blocks
from nearkin.linalg.exponential import expm1
from nearkin.linalg.givens import descend_in_order, rotate_columns_kernel, rotate_rows, rotate_rows_kernel
from nearkin.linalg.skew import for_kernels, left_skew, left_skew_entries
from nearkin.orthogonal.matching import (
    SELECTIONS,
    greedy_pairs,
    heavy_matchings,
    most_matchings,
    random_matchings,
    uniform_components,
)
from nearkin.orthogonal.optimizer import AbstractOrthogonalOptimizer, Adam, first_moment, step_length

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
    lr: step length, >= 0.
    selection: "random" (GCD-R, O(d^2) per step with no product at all), "greedy" (GCD-G, one d^3 product),
        "steepest" (GCD-S, the blossom algorithm: a slow upper bound).
    n_matchings: number of edge-disjoint matchings that rotate, one after the other, from one gradient. 1 is the paper's
        method; d - 1 (d for odd d) is a full sweep, to first order the exact exponential step. Exact angles are those
        at the point that the matchings before have reached.
    side: "right", "left", or "auto": as above, but "random" rotates rows of square parameters too. It is the same
        method in the other frame, and rows are contiguous in memory: 12 to 16 times faster. Without momentum it rotates
        columns where these are contiguous, as in the Q of `torch.linalg.qr`.
    angle: "gradient", or "exact": lr times the angle that minimises the linearised objective <G, X> along the pair's
        circle; with lr=1 every pair is solved exactly when the objective is linear (Procrustes). A concave objective
        (PCA, sorting) then increases in no step, up to rounding, whatever the selection and the number of matchings.
    momentum: heavy ball, in [0, 1]; the buffer is rotated with the point; or `Adam()` for the Adam-like step, which
        has one second moment per matrix.
    maximize: ascend instead.
    stabilize_every: number of steps after which one Newton-Schulz step removes rounding errors; 0 for never.
    layout: "matrix", or "convolution" for kernels (C_out, C_in, ...), used as (window * C_in, C_out) matrices; those of
        transposed convolutions too, whose first axis is C_in.
    random_state: seed of the selection, or a NumPy or torch generator that draws one. Every matrix draws by the seed
        and its own step, as it would alone, so matrices with equal numbers of axes rotate the same pairs. The default
        is a fixed seed, so that the replicas of data-parallel training do too.
    callback: called after each step, counted from 1, with a record of "orthogonality_error", "gradient_norm" and, if
        `step` was given a closure, its value as "objective".

    Two options of `RiemannianDescent` are read from groups: `foreach` and `check_finite`, for example
    `GivensDescent([{"params": params, "check_finite": False}], lr)`.

    References
    ----------
    Jiang et al. (2022), Algorithms 1 and 2 (GCD), arXiv:2203.05082.

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

    def _move_compiled(self, X: np.ndarray, G: np.ndarray, group: Record, state: Record) -> bool:
        more = group["momentum"] or group.get("betas") or group["stabilize_every"] or group["angle"] == "exact"
        if more or group["n_matchings"] > 1 or len(X) > 1:
            return False
        X, G = (X[0].T, G[0].T) if _rotates_columns(X, group) else (X[0], G[0])
        if group["selection"] == "greedy":
            return _turn_heaviest(X, G, group["lr"])
        if group["side"] == "auto" and X.shape[0] == X.shape[1] and not X.flags.c_contiguous:
            X, G = X.T, G.T
        if group["selection"] != "random" or not X.flags.c_contiguous or self._generator.device.type != "cpu":
            return False
        order = torch.randperm(len(X), generator=self._drawing(group, state))
        return descend_in_order(X, np.ascontiguousarray(G), order.numpy(), group["lr"])

    def _move(self, X: Tensor, G: Tensor, group: Record, state: Record) -> Tensor:
        M = first_moment(G, group, state)
        if M is not G and group["angle"] == "exact":
            raise ValueError(
                "angle is 'exact' and momentum was set after the optimizer was made; give the scheduler "
                "cycle_momentum=False"
            )
        moment, plain, right, count = M, M is G, _rotates_columns(X, group), group["n_matchings"]
        if right:  # the columns of X are the rows of its transpose
            X, G, M = X.mT, G.mT, M.mT
            if len(X) > 1:  # a single one is turned in place
                X, G, M = X.contiguous(), G.contiguous(), M.contiguous()
            M = G if plain else M
        d, known = X.shape[1], None
        if group["selection"] != "random":
            drawn, known = _heaviest(left_skew(X, M), group)
        elif count == 1:
            drawn = [uniform_components(d, 2, self._drawing(group, state))] * len(X)
        else:
            drawn = [torch.cat(random_matchings(d, count, self._drawing(group, state)))] * len(X)
        turn_rows(X, G, M, drawn, group, state, rounds=count, exact=group["angle"] == "exact", known=known)
        if right and not plain and len(X) > 1:
            moment.copy_(M.mT)
        return X.mT if right else X


def _heaviest(Omega: Tensor, group: Record) -> tuple[list[Tensor], tuple[Tensor, Tensor]]:
    """The heaviest pairs for each Omega (b, d, d), their entries there, and whether each pair is new."""
    chosen = [heavy_matchings(W, group["n_matchings"], group["selection"]) for W in Omega.abs()]
    entries = [one[tuple(pairs.T)] for one, (pairs, _) in zip(Omega, chosen, strict=True)]
    return [pairs for pairs, _ in chosen], (torch.stack(entries), torch.stack([new for _, new in chosen]))


def _rotates_columns(X: Tensor | np.ndarray, group: Record) -> bool:
    by_weight = group["side"] == "auto" and group["selection"] != "random"
    return group["side"] == "right" or (by_weight and X.shape[-2] == X.shape[-1])


def _turn_heaviest(X: np.ndarray, G: np.ndarray, lr: float) -> bool:
    """Turn the heaviest pairs of rows of X (d, k), whose transpose may be what is contiguous; False, without any
    change, if G is not finite."""
    Omega = left_skew(torch.from_numpy(X), torch.from_numpy(G))
    W = Omega.abs()
    if not math.isfinite(float(W.sum())):
        return False
    if X.flags.c_contiguous:
        return _turn_greedy(X, Omega.numpy(), W.numpy(), lr, False)
    # columns of the transpose turn the other way
    return X.T.flags.c_contiguous and _turn_greedy(X.T, Omega.numpy(), W.numpy(), -lr, True)


@cached_njit()
def _turn_greedy(V: np.ndarray, Omega: np.ndarray, W: np.ndarray, length: float, columns: bool) -> bool:
    pairs, total = greedy_pairs(W), 0.0
    s, tau = np.empty(len(pairs), V.dtype), np.empty(len(pairs), V.dtype)
    for p in range(len(pairs)):
        theta = length * Omega[pairs[p, 0], pairs[p, 1]]
        s[p], tau[p] = np.sin(theta), np.tan(theta / 2)
        total += theta * 0
    if total != 0:
        return False
    if columns:
        rotate_columns_kernel(V, pairs, s, tau)
    else:
        rotate_rows_kernel(V, pairs, s, tau)
    return True


def turn_rows(
    X: Tensor,  # (b, d, k), changed in place
    G: Tensor,  # (b, d, k)
    M: Tensor,  # (b, d, k): G, or its moment, which is rotated with X
    drawn: Sequence[Tensor],  # for each matrix components (rounds l, s): those of one round are disjoint
    group: Record,
    state: Record,
    *,
    scales: Sequence[float] = (),  # factors of the entries of each matrix; default 1
    rounds: int = 1,
    exact: bool = False,  # of pairs: by the angle that minimises <G, X> where the rounds before have led
    known: tuple[Tensor, Tensor] | None = None,  # of pairs: M's entries (b, rounds l), and whether each turns
) -> None:
    """X <- exp(-lr Omega_c) X for the blocks Omega_c of all matrices' components, those of a round in one call."""
    b, s = len(X), drawn[0].shape[1]
    rows = X.view(-1, X.shape[-1])  # of all matrices, in X's own memory
    components = torch.cat([part + n * X.shape[1] for n, part in enumerate(drawn)]).to(X.device)
    plain = s == 2 and M is G and rounds == 1 and known is None and not exact and X.is_contiguous()
    if plain and len(set(scales)) <= 1 and for_kernels(X):
        length = group["lr"] * (scales[0] if scales else 1.0)
        if not descend_in_order(rows.numpy(), G.view(rows.shape).numpy(), components.numpy().reshape(-1), length):
            raise ValueError(f"length is {length}; times the gradient's entries it is no finite angle, take less")
        return
    entries, turn = (left_skew_entries, rotate_rows) if s == 2 else (skew_blocks, turn_blocks)
    block, ones = ((), ()) if s == 2 else ((s, s), (1, 1))

    def read(V: Tensor, places: Tensor) -> Tensor:
        found = entries(rows, V.view(rows.shape), places).view(b, -1, *block)
        return found * torch.tensor(scales, dtype=X.dtype, device=X.device).view(b, 1, *ones) if scales else found

    def exact_angles(places: Tensor) -> Tensor:  # theta minimises cos(theta) (a_i + a_j) - sin(theta) Omega_ij
        a = (rows * G.view(rows.shape)).sum(1)  # diag(X G^T)
        return torch.atan2(read(G, places), 0 - a[places].sum(1).view(b, -1))  # of a zero gradient 0, not pi

    Omega = read(M, components) if known is None else known[0]
    raw = Omega if group.get("betas") is None else read(G, components)
    length = step_length(list(raw), group, state)
    if isinstance(length, Tensor):
        length = length.view(b, 1, *ones)
    turns = Omega * length if s == 2 else expm1(-(Omega * length))
    new = [1.0] * rounds if known is None else known[1].view(b, rounds, -1).unbind(1)
    components, turns = components.view(b, rounds, -1, s), turns.view(b, rounds, -1, *block)
    for places, part, once in zip(components.unbind(1), turns.unbind(1), new, strict=True):
        places = places.flatten(0, 1)
        part = (exact_angles(places) * length if exact else part) * once
        for moved in (X,) if M is G else (X, M):
            turn(moved.view(rows.shape), places, part.flatten(0, 1))
