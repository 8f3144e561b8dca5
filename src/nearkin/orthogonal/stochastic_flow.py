"""Stochastic flows: the exponential of an unbiased, block-sparse estimate of the skew gradient (flows, section 3)."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from nearkin._check import check_choice, check_integer
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.linalg.blocks import skew_blocks, stacked_rows, turn_blocks
from nearkin.linalg.exponential import expm1
from nearkin.linalg.givens import descend_rows, rotate_rows
from nearkin.linalg.skew import left_skew, left_skew_entries
from nearkin.orthogonal.colouring import FAMILIES, Importance, draw_matching, heavy_colouring, round_robin_colouring
from nearkin.orthogonal.moments import Adam, angles, first_moment, step_length
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


class StochasticFlow(AbstractOrthogonalOptimizer):
    """X <- prod_l exp(-lr Omega_l) X over disjoint components of s axes (flows, eq. 7 to 9).

    Axes are dealt into floor(d/s) random components; within each, the s x s block of Omega = G X^T - X G^T is
    exponentiated, all blocks together. O(d k s) per step; with uniform sampling only the O(d s) entries used are
    computed. It acts from the left, on square and tall parameters alike.

    Parameters
    ----------
    params: parameters or groups of them: matrices (..., d, k), orthonormal columns (rows, if d < k).
    lr: step length, > 0.
    component_size: s in [2, d], or "d/log d" (the paper's choice for convolutional nets).
    sampling: "uniform", the default; "abs" and "square" (h-regular, by the direct sampler: no rejection); "importance"
        or `Importance(...)`: matchings (s = 2) of a non-intersecting family, drawn with the probabilities of least
        variance. All but "uniform" form Omega, O(d^2 k). "square" gains nothing by Lemmas 9.5 and 9.6, and "abs" gained
        under 1 % at d = 256.
    scale: "unbiased" multiplies the sampled entries so that their mean is Omega: at s = 2 by d - 1, and then the stable
        lr is about 1/d of the exact method's. "none" leaves them as they are, so that lr means the same for every s.
    check_finite: see `RiemannianDescent`; so is `foreach`, which is read from groups.
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

    def __init__(
        self,
        params: ParamsT,
        lr: float,
        component_size: int | str = 2,
        sampling: str | Importance = "uniform",
        *,
        scale: str = "unbiased",
        momentum: float | Adam = 0.0,
        maximize: bool = False,
        stabilize_every: int = 0,
        layout: str = "matrix",
        check_finite: bool | str = True,
        random_state: Seed = 0,
        callback: Callback | None = None,
    ) -> None:
        defaults = common_defaults(lr, momentum, maximize, stabilize_every, layout)
        own = {"component_size": component_size, "scale": scale, **Importance().group_options(), "sampling": sampling}
        own["check_finite"] = check_finite
        super().__init__(params, {**defaults, **own}, random_state, callback)

    def _check_group(self, group: Record, X: Tensor) -> None:
        check_choice(group["sampling"], "sampling", SAMPLINGS)
        check_choice(group["scale"], "scale", ("unbiased", "none"))
        check_choice(group["family"], "family", FAMILIES)
        check_integer(group["rebuild_every"], "rebuild_every", low=1)
        s = resolve_component_size(group["component_size"], X.shape[-2])
        if group["sampling"] == "importance" and s != 2:
            raise ValueError(
                f"component_size is {group['component_size']!r} with sampling='importance'; it must be 2: a "
                "non-intersecting family is one of matchings"
            )

    def _move(self, X: Tensor, G: Tensor, group: Record, state: Record) -> Tensor:
        M = first_moment(G, group, state)
        s = resolve_component_size(group["component_size"], X.shape[-2])
        drawn = self._draw(X, M, s, group, state)
        rows, components = stacked_rows(X, [parts for parts, _ in drawn])
        scales = [scale if group["scale"] == "unbiased" else 1.0 for _, scale in drawn]
        counts = [len(parts) for parts, _ in drawn]
        matrices = (rows, G.view(rows.shape), None if M is G else M.view(rows.shape))
        if s == 2 and M is G and len(set(scales)) == 1:
            descend_rows(rows, matrices[1], components, group["lr"] * scales[0])
        elif s == 2:
            _turn_pairs(*matrices, components, scales, counts, group, state)
        else:
            _turn_blocks(*matrices, components, scales, counts, group, state)
        return X

    def _draw(self, X: Tensor, M: Tensor, s: int, group: Record, state: Record) -> list[tuple[Tensor, float]]:
        """Return components (l, s) of each matrix and the scale of its entries."""
        b, d, _ = X.shape
        if group["sampling"] == "uniform":
            return [(uniform_components(d, s, self.generator), uniform_scale(d, s)) for _ in range(b)]
        Omega = left_skew(X, M)
        if group["sampling"] == "importance":
            _renew_families(Omega, group, state)
            pairs = zip(Omega, state["colour"], strict=True)
            return [draw_matching(one, colour, self.generator) for one, colour in pairs]
        weights = [WEIGHTS[group["sampling"]](one) for one in Omega]
        components = [direct_components(H, s, self.generator) for H in weights]
        return [(parts, regular_scale(H, parts)) for H, parts in zip(weights, components, strict=True)]


def _renew_families(Omega: Tensor, group: Record, state: Record) -> None:
    """Put the edge colourings of all matrices (b, d, d) into the state, anew every `rebuild_every` steps."""
    heavy = group["family"] != "round-robin"
    if "colour" in state and not (heavy and (state["step"] - 1) % group["rebuild_every"] == 0):
        return
    if heavy:
        fresh = [heavy_colouring(one.abs(), group["family"]) for one in Omega]
    else:
        fresh = [round_robin_colouring(Omega.shape[-1])] * len(Omega)
    state["colour"] = torch.stack(fresh).to(Omega.device)


def _spread(numbers: Tensor | list[float], counts: list[int], like: Tensor) -> Tensor:
    """The number of each matrix (b,) for each of its components (c,)."""
    each = torch.as_tensor(numbers, dtype=like.dtype, device=like.device)
    return each.repeat_interleave(torch.tensor(counts, device=like.device), output_size=sum(counts))


def _turn_pairs(
    X: Tensor,  # (b d, k), changed in place
    G: Tensor,
    M: Tensor | None,  # turned too
    pairs: Tensor,  # (c, 2), of all b matrices
    scales: list[float],  # (b,)
    counts: list[int],  # (b,), they sum to c
    group: Record,
    state: Record,
) -> None:
    scale = _spread(scales, counts, X)
    raw = left_skew_entries(X, G, pairs) * scale
    values = raw if M is None else left_skew_entries(X, M, pairs) * scale
    length = step_length(raw.split(counts), group, state)
    theta = angles(values, _spread(length, counts, X) if isinstance(length, Tensor) else length)
    rotate_rows(X, pairs, theta)
    if M is not None:
        rotate_rows(M, pairs, theta)


def _turn_blocks(
    X: Tensor,  # (b d, k), changed in place
    G: Tensor,
    M: Tensor | None,  # turned too
    components: Tensor,  # (c, s), of all b matrices
    scales: list[float],  # (b,)
    counts: list[int],  # (b,), they sum to c
    group: Record,
    state: Record,
) -> None:
    scale = _spread(scales, counts, X)[:, None, None]
    raw = skew_blocks(X, G, components) * scale
    Omega = raw if M is None else skew_blocks(X, M, components) * scale
    length = step_length(raw.split(counts), group, state)
    turn = expm1(-Omega * (_spread(length, counts, X)[:, None, None] if isinstance(length, Tensor) else length))
    turn_blocks(X, components, turn)
    if M is not None:
        turn_blocks(M, components, turn)
