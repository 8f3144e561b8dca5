"""Flows, section 3: counts of the family, the h-regular law with its samplers, and the norm from a few entries."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from nearkin.orthogonal.matching import uniform_components
from nearkin.orthogonal.stochastic_flow import uniform_scale


def squares(Omega: Tensor) -> Tensor:
    """Omega^2 up to a power of 4, which has no part in the law; without it large entries would overflow."""
    exponent = torch.frexp(Omega.abs().amax()).exponent
    return torch.ldexp(Omega, -exponent).square()


WEIGHTS: dict[str, Callable[[Tensor], Tensor]] = {"abs": torch.abs, "square": squares}


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
    i, j = divmod(int(torch.multinomial(upper.double(), 1, generator=generator)), d)
    order = torch.randperm(d, generator=generator, device=generator.device)
    rest = order[(order != i) & (order != j)]
    return torch.cat([torch.tensor([i, j], device=rest.device), rest])[: d // s * s].reshape(-1, s)


def count_members(d: int, s: int) -> tuple[int, int]:
    """Return |T_s| and W, how many members hold a given edge (Lemma 9.3; here also for s that does not divide d)."""
    components, rest = divmod(d, s)
    members = math.factorial(d) // (math.factorial(s) ** components * math.factorial(components) * math.factorial(rest))
    holding = members * components * s * (s - 1) // (d * (d - 1))
    return members, holding


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
    """
    d, norm = len(H), float(H.sum())
    if (alpha is None) != (beta is None):
        raise ValueError(f"alpha is {alpha!r} and beta is {beta!r}; give both (version II) or none (version I)")
    rho = 1.0
    if alpha is not None and beta is not None:
        rho = s / (d * alpha * beta)
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


def estimate_norm(
    entry_weights: Callable[[Tensor], Tensor], d: int, n_entries: int, generator: torch.Generator
) -> float:
    """Return an unbiased estimate of ||h(Omega)||_1 from `n_entries` of its d (d - 1) / 2 entries (flows, eq. 15).

    `entry_weights` maps pairs (m, 2) to h(Omega[i, j]) (m,). The paper's sum runs over i < j and its expectation is
    half of the norm, which counts each entry twice; this one is the norm.
    """
    i = torch.randint(d, (n_entries,), generator=generator, device=generator.device)
    j = torch.randint(d - 1, (n_entries,), generator=generator, device=generator.device)
    j = j + (j >= i)
    return d * (d - 1) * float(entry_weights(torch.stack([i, j], 1)).double().mean())
