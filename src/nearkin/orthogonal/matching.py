"""Matchings on the complete graph of axes: the disjoint pairs of axes that rotate in one step.

GCD (section 2.3) calls them bipartite matchings; the pairs come from the complete graph, so they are (perfect, for even
n) matchings. Every matching is an array of pairs (floor(n/2), 2) with i < j in each row, sorted by i; for odd n one
axis is left out. Weights W are symmetric; callers pass |A| or the gains of the pairs.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
import rustworkx
import torch

from nearkin._check import check_integer, numpy_generator
from nearkin._compile import cached_njit
from nearkin._types import Seed

Array = TypeVar("Array", np.ndarray, torch.Tensor)
Matching: TypeAlias = Callable[..., Any]  # weights (..., n, n) to pairs, an array's to an array, a tensor's to a tensor

SELECTIONS = ("random", "greedy", "steepest")  # how pairs may be chosen, by name
LANES = 32  # entries of a row that are compared at a time: twice a vector of float32
_ASYMMETRIC = "W is not symmetric; pass the weights of unordered pairs, for example abs(A) of a skew A"


@overload
def random_matching(n: int, generator: torch.Generator) -> torch.Tensor: ...
@overload
def random_matching(n: int, generator: Seed = None) -> np.ndarray: ...
def random_matching(n: int, generator: Seed | torch.Generator = None) -> np.ndarray | torch.Tensor:
    """GCD-R: pair up a shuffled list of the axes 0..n-1.

    Parameters
    ----------
    n: number of axes.
    generator: a torch.Generator, or anything that `random_state` may be.

    Returns
    -------
    pairs: (n // 2, 2) int64; a tensor on the device of a torch.Generator, else an array.

    References
    ----------
    Jiang et al. (2022), Algorithm 2 (GCD), arXiv:2203.05082.

    Examples
    --------
    >>> sorted(nk.orthogonal.random_matching(4, 0).ravel().tolist())
    [0, 1, 2, 3]
    """
    n = check_integer(n, "n", low=1)
    if isinstance(generator, torch.Generator):
        order = torch.randperm(n, generator=generator, device=generator.device)[: n - n % 2]
        pairs = order.reshape(-1, 2).sort(dim=-1).values
        return pairs[pairs[:, 0].argsort()]
    return _sorted_pairs(numpy_generator(generator).permutation(n)[: n - n % 2].reshape(-1, 2))


def greedy_matching(W: Array, *, check_input: bool = True) -> Array:
    """GCD-G: repeatedly take the heaviest pair of free axes; ties go to the smallest (i, j).

    Computed without a sort, as the locally dominant matching: every free axis points at its heaviest free partner, and
    axes that point at each other are matched. It is the same matching, because the heaviest remaining edge is always
    dominant at both of its ends.

    Parameters
    ----------
    W: (..., n, n) symmetric weights, array or tensor.
    check_input: whether W is tested.

    Returns
    -------
    pairs: (..., n // 2, 2) integers, of the kind and device of W.

    References
    ----------
    Jiang et al. (2022), Algorithm 1 (GCD), arXiv:2203.05082.

    Examples
    --------
    >>> W = np.zeros((4, 4))
    >>> W[0, 2] = W[2, 0] = 1.0
    >>> nk.orthogonal.greedy_matching(W).tolist()
    [[0, 2], [1, 3]]
    """
    return _matched(_greedy, W, check_input)


def _greedy(W: np.ndarray) -> np.ndarray:
    dtype = W.dtype if W.dtype in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)
    pairs = greedy_pairs(np.ascontiguousarray(W, dtype))
    if len(pairs) < len(W) // 2:
        raise ValueError(_ASYMMETRIC)
    return _sorted_pairs(pairs)


def max_weight_matching(W: Array, *, check_input: bool = True) -> Array:
    """GCD-S: the matching of the largest total weight, by the blossom algorithm (rustworkx), O(n^3).

    The slow upper bound: about a second at n = 512.

    Parameters
    ----------
    W, check_input: as in `greedy_matching`.

    Returns
    -------
    pairs: as of `greedy_matching`.

    References
    ----------
    Jiang et al. (2022), section 2 (GCD), arXiv:2203.05082; Galil (1986), Efficient algorithms for finding maximum
    matching in graphs.

    Examples
    --------
    >>> W = np.array([[0, 3, 2, 0], [3, 0, 0, 2], [2, 0, 0, 0], [0, 2, 0, 0]], float)
    >>> nk.orthogonal.max_weight_matching(W).tolist()  # 2 + 2; greedy takes 3 + 0
    [[0, 2], [1, 3]]
    """
    return _matched(_max_weight, W, check_input)


def _max_weight(W: np.ndarray) -> np.ndarray:
    scale = float(np.abs(W).max(initial=0.0)) or 1.0
    weights = np.rint(np.asarray(W, np.float64) * (2.0**50 / scale)).astype(np.int64)  # rustworkx needs integers
    i, j = np.triu_indices(len(W), 1)
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(len(W)))
    graph.add_edges_from(list(zip(i.tolist(), j.tolist(), weights[i, j].tolist(), strict=True)))
    found = rustworkx.max_weight_matching(graph, max_cardinality=True, weight_fn=int)
    return _sorted_pairs(np.array(sorted(found), dtype=np.int64).reshape(-1, 2))


WEIGHTED: dict[str, Matching] = {"greedy": greedy_matching, "steepest": max_weight_matching}


def most_matchings(d: int) -> int:
    """Return how many edge-disjoint matchings cover the complete graph: d - 1 for even d, d for odd."""
    return d - 1 + d % 2


def round_robin(d: int) -> torch.Tensor:
    """Return the schedule of a round-robin tournament: matchings (d - 1, d / 2, 2), for odd d (d, (d - 1) / 2, 2).

    The circle method: in round r the players whose numbers sum to 2 r modulo an odd n meet, and r meets the last one.
    """
    n = most_matchings(d)  # odd
    rounds, offsets = torch.arange(n)[:, None], torch.arange(1, (n + 1) // 2)[None, :]
    pairs = torch.stack([(rounds - offsets) % n, (rounds + offsets) % n], -1)
    if d % 2 == 0:
        pairs = torch.cat([pairs, torch.stack([rounds, torch.full_like(rounds, d - 1)], -1)], 1)
    return pairs.sort(-1).values


def uniform_components(d: int, s: int, generator: torch.Generator) -> torch.Tensor:
    """Return floor(d/s) disjoint random sets of s axes (floor(d/s), s), in O(d); pairs, not sorted, for s = 2."""
    return torch.randperm(d, generator=generator, device=generator.device)[: d // s * s].reshape(-1, s)


def random_matchings(d: int, count: int, generator: torch.Generator) -> list[torch.Tensor]:
    """Return `count` edge-disjoint matchings: rounds of a round-robin tournament of shuffled players."""
    if count == 1:
        return [random_matching(d, generator)]
    players = torch.randperm(d, generator=generator, device=generator.device)
    schedule = round_robin(d)
    rounds = torch.randperm(len(schedule), generator=generator, device=generator.device)[:count]
    return list(players[schedule[rounds.cpu()].to(players.device)])


def heavy_matchings(
    W: torch.Tensor,  # (d, d) weights >= 0, symmetric with a zero diagonal
    count: int,
    selection: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pairs (p, 2) of `count` matchings, one after the other, and for each pair (p,) whether it is new.

    The first is by `selection`, the next from the edges left. Pairs come again where these edges have no matching.
    """
    rest, matchings, new = W.clone(), list[torch.Tensor](), list[torch.Tensor]()
    used = max(-1.0 - len(W) * float(W.max()), -float(torch.finfo(W.dtype).max))  # never preferred to a free edge
    for _ in range(count):
        matchings.append(WEIGHTED[selection](rest, check_input=False))
        i, j = matchings[-1].unbind(-1)
        new.append(rest[i, j] >= 0)
        rest[i, j] = rest[j, i] = used
    return torch.cat(matchings), torch.cat(new)


def _matched(match: Matching, W: Any, check_input: bool) -> Any:
    """`match` of every matrix of W (..., n, n), an array or a tensor, whose pairs are found on the CPU."""
    _check_weights(W, symmetry=check_input)
    if isinstance(W, torch.Tensor):
        # bfloat16 has no NumPy type and 16-bit ties would differ from float32's; widening is exact
        array = W.detach().to("cpu", torch.float64 if W.dtype == torch.float64 else torch.float32).numpy()
        return torch.from_numpy(_matched(match, array, False)).to(W.device)
    if W.ndim == 2:
        return match(W)
    flat = [match(w) for w in W.reshape(-1, *W.shape[-2:])]
    return np.stack(flat).reshape(*W.shape[:-2], -1, 2)


def _check_weights(W: object, *, symmetry: bool) -> None:
    """TypeError or ValueError unless W holds finite weights, and with `symmetry` symmetric ones."""
    if not isinstance(W, np.ndarray | torch.Tensor):
        raise TypeError(f"W is of type {type(W).__name__}; it must be a NumPy array or a torch tensor (..., n, n)")
    if W.ndim < 2 or W.shape[-1] != W.shape[-2]:
        raise ValueError(f"W has shape {tuple(W.shape)}; it must be square, (..., n, n)")
    if isinstance(W, torch.Tensor) and W.is_meta:
        raise ValueError("W is on torch's device 'meta', which holds no values; give one on the CPU or a GPU")
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(W.sum().item())  # quick; only if it overflows, every entry is tested
    xp: Any = torch if isinstance(W, torch.Tensor) else np
    if not (finite or xp.isfinite(W).all()):
        raise ValueError("W contains NaN or infinity; every weight must be finite")
    if symmetry and not xp.all(W.swapaxes(-1, -2) == W):
        raise ValueError(_ASYMMETRIC)


def _sorted_pairs(pairs: np.ndarray) -> np.ndarray:
    pairs = np.sort(pairs.astype(np.int64, copy=False), axis=-1)
    return pairs[np.argsort(pairs[:, 0])]


@cached_njit()
def _heaviest_partner(W: np.ndarray, i: int, bar: np.ndarray, lanes: np.ndarray) -> int:
    """First index of the largest W[i, j] + bar[j], j != i, bar -inf for matched axes; the last index if all are NaN."""
    row, n = W[i], W.shape[1]
    lanes[:] = bar[i] = -np.inf
    for start in range(0, n - n % LANES, LANES):  # the largest of each lane: a loop that becomes vector instructions
        for c in range(LANES):
            lanes[c] = max(lanes[c], row[start + c] + bar[start + c])
    for j in range(n - n % LANES, n):
        lanes[j % LANES] = max(lanes[j % LANES], row[j] + bar[j])
    bar[i] = 0.0
    best, found = lanes[0], n - 1
    for c in range(1, LANES):
        best = max(best, lanes[c])
    for c in range(LANES):
        if lanes[c] == best:
            for j in range(c, found, LANES):
                if row[j] + bar[j] == best and j != i:
                    found = j
                    break
    return found


@cached_njit()
def greedy_pairs(W: np.ndarray) -> np.ndarray:
    """`greedy_matching` of W (n, n), its pairs in no order; fewer than n // 2 pairs if W is not symmetric."""
    n, count = W.shape[0], 0
    pairs, work = np.empty((n // 2, 2), np.int64), np.empty((4, n), np.int64)
    bars = np.empty((2, max(n, LANES)), W.dtype)
    bar, lanes, pointer = bars[0, :n], bars[1, :LANES], work[0]
    first, after = work[1], work[2]  # lists of the axes that point at j: first[j], after[first[j]], ...
    waiting, top = work[3], n  # axes that look for a partner
    for i in range(n):
        bar[i], pointer[i], first[i], after[i], waiting[i] = 0, -1, -1, -1, i
    while top > 0 and count < n // 2:
        top -= 1
        i = waiting[top]
        if bar[i] != 0.0:
            continue
        j = _heaviest_partner(W, i, bar, lanes)
        if pointer[j] != i:
            pointer[i], after[i], first[j] = j, first[j], i
            continue
        pairs[count, 0], pairs[count, 1] = i, j
        count += 1
        bar[i] = bar[j] = -np.inf
        for taken in (i, j):
            k = first[taken]
            while k >= 0:
                if bar[k] == 0.0:
                    waiting[top] = k
                    top += 1
                k = after[k]
    return pairs[:count]
