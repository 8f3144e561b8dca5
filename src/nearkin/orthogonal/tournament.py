"""Subtournaments: which entries of a skew matrix Omega a cheap step uses, drawn so that their scaled sum is unbiased.

Omega is seen as a weighted tournament on d vertices (flows, section 3). A member of the family T_s keeps the edges
inside floor(d/s) disjoint components of s vertices; the vertices left over, if s does not divide d, rest. The estimate
of Omega is `scale` times Omega restricted to the components.

Sampling with probability proportional to the sum of h over the kept edges ("h-regular", Definition 3.3) pays little:
the variance for h = x^2 is exactly that of the uniform law, (d - s) / (s - 1) ||Omega||_F^2 (Lemmas 9.5 and 9.6).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from nearkin._check import check_integer


def _squares(Omega: Tensor) -> Tensor:
    """Omega^2 but for a power of 4, which plays no part in the law; without it large entries would overflow."""
    exponent = torch.frexp(Omega.abs().amax()).exponent
    return torch.ldexp(Omega, -exponent).square()


WEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {"abs": torch.abs, "square": _squares}


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


def uniform_components(d: int, s: int, generator: torch.Generator) -> Tensor:
    """Return a uniform member of T_s: components (floor(d/s), s), in O(d) (flows, section 3.2)."""
    order = torch.randperm(d, generator=generator, device=generator.device)
    return order[: d // s * s].reshape(-1, s)


def uniform_scale(d: int, s: int) -> float:
    """Return the factor that makes the uniform estimate unbiased: (d - 1) / (s - 1) if s divides d (Lemma 9.3).

    In general it is the inverse of the share of edges kept, d (d - 1) / (floor(d/s) s (s - 1)).
    """
    return d * (d - 1) / (d // s * s * (s - 1))


def kept_weight(H: Tensor, components: Tensor) -> Tensor:
    """Return h(G_T), the sum of H (d, d), symmetric with zero diagonal, over the edges inside the components."""
    return H[components[:, :, None], components[:, None, :]].sum() / 2


def draw_index(weights: Tensor, generator: torch.Generator) -> int:
    """Return an index of weights (n,) >= 0, drawn with probability proportional to its weight."""
    total = weights.double().cumsum(0)
    mark = (
        torch.rand((), generator=generator, dtype=torch.float64, device=generator.device).to(total.device) * total[-1]
    )
    return int(torch.searchsorted(total, mark, right=True).clamp_max(len(total) - 1))


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
    edge = draw_index(upper, generator)
    i, j = divmod(edge, d)
    order = torch.randperm(d, generator=generator, device=generator.device)
    rest = order[(order != i) & (order != j)]
    return torch.cat([torch.tensor([i, j], device=rest.device), rest])[: d // s * s].reshape(-1, s)


def regular_scale(H: Tensor, components: Tensor) -> float:
    """Return ||h(Omega)||_1 / (2 h(G_T)), which makes the h-regular estimate unbiased (flows, Algorithm 1)."""
    kept = float(kept_weight(H, components))
    return float(H.sum()) / (2 * kept) if kept > 0 else uniform_scale(len(H), components.shape[1])
