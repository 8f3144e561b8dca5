"""Subtournaments: which entries of a skew matrix Omega a cheap step uses, drawn so that their scaled sum is unbiased.

Omega is seen as a weighted tournament on d vertices (flows, section 3). A member of the family T_s keeps the edges
inside floor(d/s) disjoint components of s vertices; the vertices left over, if s does not divide d, rest. The estimate
of Omega is `scale` times Omega restricted to the components.

Sampling with probability proportional to the sum of h over the kept edges ("h-regular", Definition 3.3) pays little:
the variance for h = x^2 is exactly that of the uniform law, (d - s) / (s - 1) ||Omega||_F^2 (Lemmas 9.5 and 9.6).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nearkin._check import check_integer, check_real


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
        raise ValueError(f"component_size is {component_size!r}; it must be an integer, 'd/log d' or 'noise'")
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


def count_members(d: int, s: int) -> tuple[int, int]:
    """Return |T_s| and W, how many members hold a given edge (Lemma 9.3; here also for s that does not divide d)."""
    components, rest = divmod(d, s)
    members = math.factorial(d) // (math.factorial(s) ** components * math.factorial(components) * math.factorial(rest))
    holding = members * components * s * (s - 1) // (d * (d - 1))
    return members, holding


def kept_weight(H: Tensor, components: Tensor) -> Tensor:
    """Return h(G_T), the sum of H (d, d), symmetric with zero diagonal, over the edges inside the components."""
    return H[components[:, :, None], components[:, None, :]].sum() / 2


def direct_components(H: Tensor, s: int, generator: torch.Generator) -> Tensor:
    """Return an h-regular member of T_s without rejection; H = h(Omega) (d, d). Components (floor(d/s), s).

    One edge is drawn with probability proportional to h, then the rest uniformly given that this edge is kept. Each
    edge lies in the same number W of members, so p_T = sum over T's edges of (h_e / ||h||) / W: the law of Definition
    3.3.
    """
    d = len(H)
    upper = H.triu(1).reshape(-1)
    total = upper.double().cumsum(0)
    if not float(total[-1]) > 0:
        return uniform_components(d, s, generator)
    mark = torch.rand((), generator=generator, dtype=torch.float64, device=generator.device).to(H.device) * total[-1]
    edge = int(torch.searchsorted(total, mark, right=True).clamp_max(int(total.numel()) - 1))
    i, j = divmod(edge, d)
    order = torch.randperm(d, generator=generator, device=generator.device)
    rest = order[(order != i) & (order != j)]
    return torch.cat([torch.tensor([i, j], device=rest.device), rest])[: d // s * s].reshape(-1, s)


def rejection_components(
    H: Tensor,  # (d, d), h(Omega)
    s: int,
    generator: torch.Generator,
    *,
    alpha: float | None = None,
    beta: float | None = None,
) -> Tensor:
    """Return an h-regular member of T_s by the paper's Algorithm 1: uniform draws, accepted with q_T = 2 h(G_T) / tau.

    Version I (alpha and beta None): tau = ||h(Omega)||_1. Version II: tau = s / (d alpha beta) ||h(Omega)||_1, valid if
    at least the share alpha of the entries is beta times the largest; ValueError when a draw shows that it is not.
    `direct_components` has the same law and needs no trials; this one is kept as the paper's.
    """
    d, norm = len(H), float(H.sum())
    if (alpha is None) != (beta is None):
        raise ValueError(f"alpha is {alpha!r} and beta is {beta!r}; give both (version II) or none (version I)")
    rho = 1.0
    if alpha is not None and beta is not None:
        rho = s / (d * check_real(alpha, "alpha", above=0, high=1) * check_real(beta, "beta", above=0, high=1))
    if norm == 0:
        return uniform_components(d, s, generator)
    while True:
        components = uniform_components(d, s, generator)
        accept = 2 * float(kept_weight(H, components)) / (rho * norm)
        if accept > 1 + 1e-6:
            raise ValueError(
                f"alpha={alpha!r} and beta={beta!r} give an acceptance of {accept:.3g} > 1: Omega is not "
                "(alpha, beta)-balanced; give smaller values or none"
            )
        if float(torch.rand((), generator=generator, dtype=torch.float64, device=generator.device)) < accept:
            return components


def regular_scale(H: Tensor, components: Tensor) -> float:
    """Return ||h(Omega)||_1 / (2 h(G_T)), which makes the h-regular estimate unbiased (flows, Algorithm 1)."""
    kept = float(kept_weight(H, components))
    return float(H.sum()) / (2 * kept) if kept > 0 else uniform_scale(len(H), components.shape[1])


def estimate_norm(entry_weights: Callable[[Tensor], Tensor], d: int, n_entries: int, generator: Any) -> float:
    """Return an unbiased estimate of ||h(Omega)||_1 from `n_entries` of its d (d - 1) / 2 entries (flows, eq. 15).

    `entry_weights` maps pairs (m, 2) to h(Omega[i, j]) (m,). The paper's sum runs over i < j and its expectation is
    half of the norm, which counts each entry twice; this one is the norm.
    """
    check_integer(n_entries, "n_entries", low=1)
    i = torch.randint(d, (n_entries,), generator=generator, device=generator.device)
    j = torch.randint(d - 1, (n_entries,), generator=generator, device=generator.device)
    j = j + (j >= i)
    return d * (d - 1) * float(entry_weights(torch.stack([i, j], 1)).double().mean())
