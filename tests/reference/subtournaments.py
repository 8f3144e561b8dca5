"""Flows, section 3, as printed: counts of the family, sampling by rejection, and the norm from a few entries."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from nearkin.orthogonal.matching import uniform_components
from nearkin.orthogonal.stochastic_flow import kept_weight


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
