"""Stochastic flows: the exponential of an unbiased, block-sparse estimate of the skew gradient (flows, section 3).

The skew matrix Omega is seen as a weighted tournament on d vertices. A member of the family T_s keeps the edges inside
floor(d/s) disjoint components of s vertices; the vertices left over, if s does not divide d, rest. The estimate is
`scale` times Omega restricted to the components.

Sampling with probability proportional to the sum of h over the kept edges ("h-regular", Definition 3.3) gains little:
the variance for h = x^2 is exactly that of the uniform law, (d - s) / (s - 1) ||Omega||_F^2 (Lemmas 9.5 and 9.6).

Importance sampling draws a matching of a round-robin tournament, a non-intersecting family of the paper (sections 3.2
and 9.7): every pair of axes stands in one of its matchings. Matching m, drawn with probability p_m, gives the estimate
Omega[m] / p_m. Heavier matchings have less variance, but the best family is NP-hard to find (Lemma 9.8). Lemma 9.7 as
printed, Var = K sum_e w_e^2 / K(e) - ||Omega||_F^2, counts each edge once in its sum and twice in the norm. With both
counted twice it is 2 K sum_e w_e^2 / K(e) - ||Omega||_F^2, K the sum of |w_e| and K(e) that of e's matching.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.optim.optimizer import ParamsT

from nearkin._check import check_choice, check_integer
from nearkin._types import Record, Seed
from nearkin.contracts import Callback
from nearkin.linalg.skew import left_skew
from nearkin.orthogonal.givens_descent import turn_rows
from nearkin.orthogonal.matching import round_robin, uniform_components
from nearkin.orthogonal.optimizer import AbstractOrthogonalOptimizer, Adam, first_moment

SAMPLINGS = ("uniform", "abs", "square", "importance")


class StochasticFlow(AbstractOrthogonalOptimizer):
    """X <- prod_l exp(-lr Omega_l) X over disjoint components of s axes (flows, eq. 7 to 9).

    Axes are divided into floor(d/s) random components; within each, the s x s block of Omega = G X^T - X G^T is
    exponentiated, all blocks together. O(d k s) per step; with uniform sampling only the O(d s) entries used are
    computed. It acts from the left, on square and tall parameters alike.

    Parameters
    ----------
    params: parameters or groups of them: matrices (..., d, k), orthonormal columns (rows, if d < k).
    lr: step length, >= 0.
    component_size: s in [2, d], or "d/log d" (the paper's choice for convolutional nets).
    sampling: "uniform", the default; "abs" and "square" (h-regular, by the direct sampler: no rejection);
        "importance": matchings (s = 2) of a round-robin tournament, drawn with the probabilities of least variance. All
        but "uniform" form Omega, O(d^2 k). "square" gains nothing by Lemmas 9.5 and 9.6, and "abs" gained under 1 % at
        d = 256.
    scale: "unbiased" multiplies the sampled entries so that their mean is Omega: at s = 2 by d - 1, and then the stable
        lr is about 1/d of the exact method's. "none" does not scale them, so that lr means the same for every s.
    check_finite: see `RiemannianDescent`; so is `foreach`, which is read from groups.
    momentum, maximize, stabilize_every, layout, random_state, callback: see `GivensDescent`.

    References
    ----------
    Choromanski et al. (2020), eqs. 7-9 (flows), arXiv:2003.13563.

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
        sampling: str = "uniform",
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
        shared = {"lr": lr, "momentum": momentum, "maximize": maximize, "stabilize_every": stabilize_every}
        own = {"layout": layout, "component_size": component_size, "scale": scale, "check_finite": check_finite}
        super().__init__(params, {**shared, **own, "sampling": sampling}, random_state, callback)

    def _check_group(self, group: Record, X: Tensor) -> None:
        check_choice(group["sampling"], "sampling", SAMPLINGS)
        check_choice(group["scale"], "scale", ("unbiased", "none"))
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
        scales = [scale for _, scale in drawn] if group["scale"] == "unbiased" else []
        turn_rows(X, G, M, [parts for parts, _ in drawn], group, state, scales=scales)
        return X

    def _draw(self, X: Tensor, M: Tensor, s: int, group: Record, state: Record) -> list[tuple[Tensor, float]]:
        """Return components (l, s) of each matrix and the scale of its entries."""
        b, d, _ = X.shape
        if group["sampling"] == "uniform":
            return [(uniform_components(d, s, self._drawing(group, state)), uniform_scale(d, s))] * b
        Omega = left_skew(X, M)
        if group["sampling"] == "importance":
            schedule = round_robin(d).to(X.device)
            return [draw_matching(one, schedule, self._drawing(group, state)) for one in Omega]
        weights = [WEIGHTS[group["sampling"]](one) for one in Omega]
        components = [direct_components(H, s, self._drawing(group, state)) for H in weights]
        return [(parts, regular_scale(H, parts)) for H, parts in zip(weights, components, strict=True)]


def resolve_component_size(component_size: int | str, d: int) -> int:
    """Return s from an integer in [2, d] or from "d/log d", the paper's ceil(d / ln d) (flows, section 9.1.2)."""
    if component_size == "d/log d":
        return max(2, min(d, math.ceil(d / math.log(d)))) if d > 1 else 2
    if isinstance(component_size, str):
        raise ValueError(f"component_size is {component_size!r}; it must be an integer or 'd/log d'")
    check_integer(component_size, "component_size", low=2)
    if component_size > d:
        raise ValueError(
            f"component_size is {component_size}; it must be at most {d}, the matrix's longer side: "
            f"type component_size={d} for the exact step or 'd/log d'"
        )
    return int(component_size)


# ---- members of T_s -------------------------------------------------------------------------------------------------


WEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {
    "abs": torch.abs,
    "square": lambda Omega: Omega.double().square(),  # in float32 large entries would overflow
}


def uniform_scale(d: int, s: int) -> float:
    """Return the factor that makes the uniform estimate unbiased: (d - 1) / (s - 1) if s divides d (Lemma 9.3).

    In general it is the inverse of the share of edges kept, d (d - 1) / (floor(d/s) s (s - 1)).
    """
    return d * (d - 1) / (d // s * s * (s - 1)) if d >= s else 1.0  # one axis alone has no component


def kept_weight(H: Tensor, components: Tensor) -> Tensor:
    """Return h(G_T), the sum of H (d, d), symmetric with zero diagonal, over the edges inside the components."""
    return H[components[:, :, None], components[:, None, :]].sum() / 2


def regular_scale(H: Tensor, components: Tensor) -> float:
    """Return ||h(Omega)||_1 / (2 h(G_T)), which makes the h-regular estimate unbiased (flows, Algorithm 1)."""
    kept = float(kept_weight(H, components))
    return float(H.sum()) / (2 * kept) if kept > 0 else uniform_scale(len(H), components.shape[1])


def direct_components(H: Tensor, s: int, generator: torch.Generator) -> Tensor:
    """Return an h-regular member of T_s without rejection; H = h(Omega) (d, d). Components (floor(d/s), s).

    One edge is drawn with probability proportional to h, then the rest uniformly given that this edge is kept. Each
    edge lies in the same number W of members, so p_T = sum over T's edges of (h_e / ||h||) / W: the law of Definition
    3.3.
    """
    d = len(H)
    upper = H.triu(1).reshape(-1)
    if not float(upper.sum()) > 0:
        return uniform_components(d, s, generator)
    i, j = divmod(_draw_index(upper, generator), d)
    order = torch.randperm(d, generator=generator, device=generator.device)
    rest = order[(order != i) & (order != j)]
    return torch.cat([torch.tensor([i, j], device=rest.device), rest])[: d // s * s].reshape(-1, s)


def _draw_index(weights: Tensor, generator: torch.Generator) -> int:
    """Return an index of weights (n,) >= 0, drawn with probability proportional to its weight."""
    total = weights.double().cumsum(0)
    uniform = torch.rand((), generator=generator, dtype=torch.float64, device=generator.device).to(total.device)
    return int(torch.searchsorted(total, uniform * total[-1], right=True).clamp_max(len(total) - 1))


# ---- importance sampling ---------------------------------------------------------------------------------------------


def optimal_probabilities(Omega: Tensor, schedule: Tensor) -> Tensor:
    """Return p (n,) of disjoint matchings (n, m, 2), proportional to sqrt(sum of w_e^2): least variance (Lemma 3.2)."""
    i, j = schedule.unbind(-1)
    weights = Omega[i, j].double().square().sum(-1).sqrt()
    total = weights.sum()
    return weights / total if float(total) > 0 else torch.full_like(weights, 1 / len(weights))


def draw_matching(Omega: Tensor, schedule: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
    """Return pairs (m, 2) of a matching drawn with the optimal probabilities, and the scale 1 / p_m."""
    probabilities = optimal_probabilities(Omega, schedule)
    number = _draw_index(probabilities, generator)
    return schedule[number], 1 / float(probabilities[number])
