"""Stochastic flows: the exponential of an unbiased, block-sparse estimate of the skew gradient (flows, section 3)."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from nearkin._check import check_choice, check_integer
from nearkin._deprecation import accepts_old, renamed
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.linalg.blocks import skew_blocks, turn_blocks
from nearkin.linalg.exponential import expm1
from nearkin.linalg.givens import descend_rows, rotate_rows
from nearkin.linalg.skew import left_skew, left_skew_entries
from nearkin.orthogonal.colouring import FAMILIES, Importance, draw_matching, heavy_colouring, round_robin_colouring
from nearkin.orthogonal.component_size import measured_component_size
from nearkin.orthogonal.moments import Adam, accepts_old_moments, angles, first_moment, step_length
from nearkin.orthogonal.optimizer import AbstractOrthogonalOptimizer, common_defaults
from nearkin.orthogonal.tournament import (
    WEIGHTS,
    direct_components,
    regular_scale,
    resolve_component_size,
    uniform_components,
    uniform_scale,
)

SAMPLINGS = ("uniform", "abs", "square", "importance")


def _accepts_old_family(function: Callable[..., None]) -> Callable[..., None]:
    """`family=` and `rebuild_every=` are taken as `sampling=Importance(...)`, with a warning."""

    @wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        old = {name: kwargs.pop(name) for name in ("family", "rebuild_every") if name in kwargs}
        if old:
            renamed("family= and rebuild_every=", "sampling=nearkin.orthogonal.Importance(family, rebuild_every)")
            given = signature(function).bind(self, *args, **kwargs)  # sampling may be given by its position
            if given.arguments.get("sampling") == "importance":
                given.arguments["sampling"] = Importance(**old)
            args, kwargs = given.args[1:], given.kwargs
        function(self, *args, **kwargs)

    return call


class StochasticFlow(AbstractOrthogonalOptimizer):
    """X <- prod_l exp(-lr Omega_l) X over disjoint components of s axes (flows, eq. 7 to 9).

    Axes are dealt into floor(d/s) random components; within each, the s x s block of Omega = G X^T - X G^T is
    exponentiated, all blocks together. O(d k s) per step; with uniform sampling only the O(d s) entries used are
    computed. It acts from the left, on square and tall parameters alike.

    Parameters
    ----------
    params: parameters or groups of them: matrices (..., d, k), orthonormal columns (rows, if d < k).
    lr: step length, > 0.
    component_size: s in [2, d], or "d/log d" (the paper's choice for convolutional nets), or "noise": grown and shrunk
        so that sampling adds as much variance as the gradients show over the last steps (`component_size`, ours).
    sampling: "uniform", the default; "abs" and "square" (h-regular, by the direct sampler: no rejection); "importance"
        or `Importance(...)`: matchings (s = 2) of a non-intersecting family, drawn with the probabilities of least
        variance. All but "uniform" form Omega, O(d^2 k). "square" gains nothing by Lemmas 9.5 and 9.6, and "abs" gained
        under 1 % at d = 256.
    scale: "unbiased" multiplies the sampled entries so that their mean is Omega: at s = 2 by d - 1, and then the stable
        lr is about 1/d of the exact method's. "none" leaves them as they are, so that lr means the same for every s.
    momentum, maximize, stabilize_every, layout, random_state, callback: see `GivensDescent`.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> X = torch.nn.Parameter(torch.eye(4))
    >>> B = torch.eye(4)[[1, 2, 0, 3]]
    >>> optimizer = nk.orthogonal.StochasticFlow([X], lr=0.1, component_size=2, scale="none", momentum=0.5)
    >>> for _ in range(400):
    ...     optimizer.zero_grad()
    ...     loss = -(X * B).sum()
    ...     loss.backward()
    ...     _ = optimizer.step()
    >>> bool(torch.allclose(X, B, atol=1e-3))
    True
    """

    @accepts_old(generator="random_state")
    @accepts_old_moments
    @_accepts_old_family
    def __init__(
        self,
        params: Any,
        lr: float,
        component_size: int | str = 2,
        sampling: str | Importance = "uniform",
        *,
        scale: str = "unbiased",
        momentum: float | Adam = 0.0,
        maximize: bool = False,
        stabilize_every: int = 0,
        layout: str = "matrix",
        random_state: Seed = 0,
        callback: Callback | None = None,
    ) -> None:
        defaults = common_defaults(lr, momentum, maximize, stabilize_every, layout)
        own = {"component_size": component_size, "scale": scale, **Importance().group_options(), "sampling": sampling}
        super().__init__(params, {**defaults, **own}, random_state, callback)

    def _check_group(self, group: Record, X: Tensor) -> None:
        check_choice(group["sampling"], "sampling", SAMPLINGS)
        check_choice(group["scale"], "scale", ("unbiased", "none"))
        check_choice(group["family"], "family", FAMILIES)
        check_integer(group["rebuild_every"], "rebuild_every", low=1)
        measured = group["component_size"] == "noise"
        s = None if measured else resolve_component_size(group["component_size"], X.shape[-2])
        if measured and X.shape[-2] < 2:
            raise ValueError("component_size is 'noise' for a matrix of one row; there is nothing to turn")
        if group["sampling"] == "importance" and s != 2:
            raise ValueError(
                f"component_size is {group['component_size']!r} with sampling='importance'; it must be 2: a "
                "non-intersecting family is one of matchings"
            )

    def _move(self, X: Tensor, G: Tensor, group: Record, state: Record) -> Tensor:
        M = first_moment(G, group, state)
        if group["component_size"] == "noise":
            s = measured_component_size(X, G, state)
        else:
            s = resolve_component_size(group["component_size"], X.shape[-2])
        drawn = [self._draw(X[b], M[b], s, group, state, b) for b in range(len(X))]
        if s == 2:
            _turn_pairs(X, G, M, drawn, group, state)
        else:
            _turn_blocks(X, G, M, drawn, group, state)
        return X

    def _draw(self, X: Tensor, M: Tensor, s: int, group: Record, state: Record, number: int) -> tuple[Tensor, float]:
        """Return components (l, s) of one matrix and the scale of its entries."""
        d, sampling = len(X), group["sampling"]
        if sampling == "uniform":
            components, scale = uniform_components(d, s, self.generator), uniform_scale(d, s)
        elif sampling == "importance":
            Omega = left_skew(X, M)
            colour = _family_of(Omega, group, state, number)
            components, scale = draw_matching(Omega, colour, self.generator)
        else:
            H = WEIGHTS[sampling](left_skew(X, M))
            components = direct_components(H, s, self.generator)
            scale = regular_scale(H, components)
        return components.to(X.device), scale if group["scale"] == "unbiased" else 1.0


def _family_of(Omega: Tensor, group: Record, state: Record, number: int) -> Tensor:
    """Return matrix `number`'s edge colouring, kept in the state and rebuilt every `rebuild_every` steps."""
    heavy = group["family"] != "round-robin"
    name = f"colour_{number}"
    if name not in state or (heavy and (state["step"] - 1) % group["rebuild_every"] == 0):
        fresh = heavy_colouring(Omega.abs(), group["family"]) if heavy else round_robin_colouring(len(Omega))
        state[name] = fresh.to(Omega.device)
    return state[name]


def _turn_pairs(
    X: Tensor,  # (b, d, k), changed in place
    G: Tensor,
    M: Tensor,  # turned too, if it is not G
    drawn: list[tuple[Tensor, float]],
    group: Record,
    state: Record,
) -> None:
    if M is G:
        for b, (pairs, scale) in enumerate(drawn):
            descend_rows(X[b], G[b], pairs, group["lr"] * scale)
        return
    raw = [left_skew_entries(X[b], G[b], pairs) * scale for b, (pairs, scale) in enumerate(drawn)]
    values = [left_skew_entries(X[b], M[b], pairs) * scale for b, (pairs, scale) in enumerate(drawn)]
    length = step_length(raw, group, state)
    for b, (pairs, _) in enumerate(drawn):
        theta = angles(values[b], length[b] if isinstance(length, Tensor) else length)
        rotate_rows(X[b], pairs, theta)
        rotate_rows(M[b], pairs, theta)


def _turn_blocks(
    X: Tensor,  # (b, d, k), changed in place
    G: Tensor,
    M: Tensor,  # turned too, if it is not G
    drawn: list[tuple[Tensor, float]],
    group: Record,
    state: Record,
) -> None:
    raw = torch.stack([skew_blocks(X[b], G[b], parts) * scale for b, (parts, scale) in enumerate(drawn)])
    Omega = raw
    if M is not G:
        Omega = torch.stack([skew_blocks(X[b], M[b], parts) * scale for b, (parts, scale) in enumerate(drawn)])
    length = step_length(list(raw), group, state)
    turn = expm1(-Omega * (length[:, None, None, None] if isinstance(length, Tensor) else length))
    for b, (components, _) in enumerate(drawn):
        turn_blocks(X[b], components, turn[b])
        if M is not G:
            turn_blocks(M[b], components, turn[b])
