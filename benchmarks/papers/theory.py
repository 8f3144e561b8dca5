"""Lemmas, theorems, costs and counts that no table or figure of the papers shows: each a job of seconds.

Every job returns both sides of what is claimed: an inequality's worst case, a slope, a number of trials.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.linalg import expm
from torch import Tensor, nn

import nearkin as nk
from benchmarks.harness import median_ms
from benchmarks.hashing.problems import Features
from benchmarks.jobs import Job, Row
from benchmarks.papers.scq_whole import KINDS, measured, validation
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.skew import left_skew
from nearkin.orthogonal import StochasticFlow
from nearkin.orthogonal.matching import uniform_components
from nearkin.orthogonal.stochastic_flow import kept_weight

MODULE = 4 + 4 * 5**0.5  # n m / n, m inner iterations over n terms: b = 1 satisfies eq. 24 with epsilon = L


@dataclass(frozen=True)
class Size:
    """Repetitions of points and chains, steps of Theorem 5.1; rows of the timings; bits of eq. 25's other lengths."""

    points: int = 500
    chains: int = 200
    steps: int = 400
    draws: int = 2000
    rows: int = 100_000
    bits: tuple[int, ...] = (16, 64)
    seeds: int = 3


FULL, SMALL = Size(), Size(20, 10, 20, 20, 2000, (8,), 1)


def matchings(d: int) -> list[list[tuple[int, int]]]:
    """All perfect matchings of d axes."""
    found = {tuple(sorted(tuple(sorted(order[k : k + 2])) for k in range(0, d, 2))) for order in permutations(range(d))}
    return [[(int(i), int(j)) for i, j in pairs] for pairs in sorted(found)]


# -- GCD -------------------------------------------------------------------------------------------------------------


def hurwitz(size: Size) -> Row:
    """Lemma 1: elements of SO(n) by n (n - 1) / 2 Givens rotations, one a pair, and the largest error."""
    worst = 0.0
    for n in (3, 5, 8, 12):
        for X in haar_orthogonal(max(2, size.points // 50), n, n, random_state=n, dtype=torch.float64).numpy():
            A = X * np.where(np.arange(n) == 0, np.linalg.det(X), 1.0)  # determinant 1
            rest, turns = A.copy(), list[tuple[int, int, float]]()
            for i, j in product(range(n), range(n)):
                if i < j:
                    theta = math.atan2(rest[j, i], rest[i, i])
                    rest = givens(n, i, j, theta).T @ rest
                    turns.append((i, j, theta))
            product_of = np.eye(n)
            for turn in turns:
                product_of = product_of @ givens(n, *turn)
            worst = max(worst, float(np.abs(product_of - A).max()))
    return {"error": worst}


def givens(n: int, i: int, j: int, theta: float) -> np.ndarray:
    G, c, s = np.eye(n), math.cos(theta), math.sin(theta)
    G[i, i], G[j, j], G[i, j], G[j, i] = c, c, -s, s
    return G


def commuting(size: Size) -> Row:
    """Lemma 2: rotations of disjoint pairs commute, of pairs that share an axis do not."""
    rng, apart, sharing = np.random.default_rng(0), 0.0, math.inf
    for _ in range(size.points):
        a, b, c, d = (int(axis) for axis in rng.permutation(8)[:4])
        A, B, C = (givens(8, *pair, rng.uniform(0.5, 1)) for pair in ((a, b), (c, d), (b, c)))
        apart = max(apart, float(np.abs(A @ B - B @ A).max()))
        sharing = min(sharing, float(np.abs(A @ C - C @ A).max()))
    return {"disjoint": apart, "sharing": sharing}


def descent(size: Size) -> Row:
    """Lemma 3 and Corollary 2 on F(R) = -tr(M^T R), smooth with eta = |M|: the expected gain of a step of GCD-R.

    Both constants: as printed, and the appendix's half of it. Where M is symmetric and R = I, the gradient is 0.
    """
    n, rng = 6, np.random.default_rng(0)
    pairs = matchings(n)
    printed, halved, steepest = [], [], []
    for R in haar_orthogonal(size.points, n, n, random_state=1, dtype=torch.float64).numpy():
        M = rng.standard_normal((n, n))
        eta = float(np.linalg.norm(M, 2))
        A = R.T @ M
        skew = (A - A.T) / 2  # minus the gradient along R exp(g), g skew, in the Frobenius metric
        gains = []
        for matching in pairs:
            g = np.zeros((n, n))
            for i, j in matching:
                g[i, j], g[j, i] = skew[i, j] / eta, skew[j, i] / eta
            gains.append(float(np.trace(M.T @ (R @ expm(g) - R))))
        expected, whole = float(np.mean(gains)), float((skew**2).sum())
        printed.append(expected / (whole / ((n - 1) * eta)))
        halved.append(expected / (whole / (2 * (n - 1) * eta)))
        heaviest = max(range(len(pairs)), key=lambda k: sum(skew[i, j] ** 2 for i, j in pairs[k]))
        steepest.append(gains[heaviest] / expected)
    return {"printed": min(printed), "appendix": min(halved), "GCD-S over GCD-R": min(steepest)}


def sublinear(size: Size) -> Row:
    """Theorem 1, corrected: the gap of GCD-R against (k / (2 D^2 (n - 1) eta) + 1 / gap_0)^-1, D = n pi."""
    n, steps, rng = 6, 300, np.random.default_rng(2)
    M = rng.standard_normal((n, n))
    M *= np.sign(np.linalg.det(M))
    eta, best = float(np.linalg.norm(M, 2)), float(np.linalg.svd(M)[1].sum())
    pairs, D, gaps = matchings(n), n * math.pi, np.zeros(steps + 1)
    for R in haar_orthogonal(size.chains, n, n, random_state=3, dtype=torch.float64).numpy():
        R = R * np.where(np.arange(n) == 0, np.linalg.det(R), 1.0)
        for k in range(steps + 1):
            gaps[k] += (best - float((M * R).sum())) / size.chains
            A = R.T @ M
            for i, j in pairs[rng.integers(len(pairs))]:
                R = R @ givens(n, i, j, -(A[i, j] - A[j, i]) / 2 / eta)
    bound = 1 / (np.arange(steps + 1) / (2 * D**2 * (n - 1) * eta) + 1 / gaps[0])
    return {"largest over bound": float((gaps[1:] / bound[1:]).max()), "first": float(gaps[0]), "last": float(gaps[-1])}


# -- SVRG-SBB --------------------------------------------------------------------------------------------------------


def least_squares(kind: str) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Rows of unit length and targets, f the mean of (a x - b)^2 / 2; L of every term and the least curvature."""
    rng = np.random.default_rng(4)
    a = rng.standard_normal((50, 3 if kind == "Corollary 1" else 5))
    a /= np.linalg.norm(a, axis=1)[:, None]
    return a, rng.standard_normal(50), 1.0, float(np.linalg.eigvalsh(a.T @ a / 50)[0])


def algorithm_1(
    a: np.ndarray, b: np.ndarray, start: np.ndarray, epsilon: float, m: int, epochs: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """As printed with single terms, all chains at once: per epoch the inner iterates, the steps (chains,), the ends."""
    x, n, iterates, steps, ends = start.copy(), len(a), [], [], [start]
    before: tuple[np.ndarray, np.ndarray] | None = None
    for _ in range(epochs):
        snapshot, whole = x.copy(), (x @ a.T - b) @ a / n
        eta = np.full(len(x), 1 / (m * (1.0 + epsilon)))
        if before is not None:
            dx, dy = snapshot - before[0], whole - before[1]
            eta = (dx**2).sum(1) / (np.abs((dx * dy).sum(1)) + epsilon * (dx**2).sum(1)) / m
        before, inner = (snapshot, whole), np.empty((m, *x.shape))
        for t in range(m):
            inner[t] = x
            i = rng.integers(n, size=len(x))
            x = x - eta[:, None] * (((x - snapshot) * a[i]).sum(1)[:, None] * a[i] + whole)
        iterates.append(inner)
        steps.append(eta)
        ends.append(x.copy())
    return iterates, steps, ends


def convergence(kind: str, size: Size) -> Row:
    """Both sides of Lemma 1, Theorems 1 to 3 and Corollary 1 on least squares, where every constant is known."""
    a, b, L, mu = least_squares(kind)
    n, rng, epochs = len(b), np.random.default_rng(5), 60 if kind == "Theorem 3" else 10
    epsilon = 0.0 if kind == "Corollary 1" else L
    kappa = L / (mu + epsilon) if kind == "Corollary 1" else 1.0
    m = math.ceil(MODULE * n / 2 * max(1.0, kappa**2))
    best = np.linalg.lstsq(a, b, rcond=None)[0]

    def value(x: np.ndarray) -> np.ndarray:
        return ((x @ a.T - b) ** 2).mean(-1) / 2

    def squared(x: np.ndarray) -> np.ndarray:
        return (((x @ a.T - b) @ a / n) ** 2).sum(-1)

    start = best + rng.standard_normal((1, a.shape[1])) * np.ones((size.chains, 1)) * 3
    iterates, steps, ends = algorithm_1(a, b, start, epsilon, m, epochs, rng)
    gap = float(value(start[0]) - value(best))
    out = float(np.mean([squared(inner).mean() for inner in iterates]))
    total, smallest = m * epochs, float(min(eta.min() for eta in steps))
    if kind == "Theorem 3":
        rate = 1 / (0.5 * mu * total * smallest)
        last = float(value(ends[-1]).mean() - value(best))
        return {"rho": rate, "left": last / gap, "right": rate}
    if kind in ("Theorem 2", "Corollary 1"):
        return {"left": out, "right": 4 * gap / (total * smallest)}
    gammas, conditions = [], []
    for eta in {float(value) for of in steps for value in of} if kind == "Theorem 1" else {float(steps[0][0])}:
        beta = 4 * m * eta**2 * L**3
        rho, c, of = 1 + eta * beta + 2 * eta**2 * L**2, 0.0, np.empty(m)
        for t in reversed(range(m)):
            of[t] = eta * (1 - c / beta - eta * (L + 2 * c))
            conditions.append(eta * (L + 2 * c) + c / beta)
            c = rho * c + eta**2 * L**3
        gammas.append(of)
    if kind == "Theorem 1":
        return {"left": out, "right": gap / total / float(min(of.min() for of in gammas)), "eq. 22": max(conditions)}
    left = float((gammas[0] * squared(iterates[0]).mean(1)).sum())
    return {"left": left, "right": float(gap - (value(ends[1]).mean() - value(best))), "eq. 22": max(conditions)}


def lipschitz(loss: str, size: Size) -> Row:
    """Lemma 4: the largest |grad F(X) - grad F(Y)| / |X - Y| in a box, as Y comes nearer.

    X and Y lie on either side of 1 + d_01^2 = d_02^2, where a hinge has its corner.
    """
    rng, found = np.random.default_rng(6), {}
    answers = np.array([(i, j, k) for i in range(6) for j in range(6) for k in range(6) if len({i, j, k}) == 3])
    problem = OrdinalObjective(answers, 6, get_loss(loss, 2), dtype=np.float64)

    def side(Z: np.ndarray) -> float:
        return 1 + float(((Z[0] - Z[1]) ** 2).sum() - ((Z[0] - Z[2]) ** 2).sum())

    for distance in (1e-1, 1e-3, 1e-5):
        ratios = [0.0]
        for _ in range(size.points):
            low, high = rng.uniform(-1, 1, (2, 6, 2))
            if side(low) * side(high) >= 0:
                continue
            direction = (high - low) / np.linalg.norm(high - low)
            for _ in range(50):
                middle = (low + high) / 2
                low, high = (middle, high) if side(low) * side(middle) > 0 else (low, middle)
            ends = (low - distance / 2 * direction, low + distance / 2 * direction)
            X, Y = (problem.gradient(pad_rows(Z, np.float64)) for Z in ends)
            ratios.append(float(np.linalg.norm(X - Y)) / distance)
        found[f"{distance:g}"] = max(ratios)
    return found


# -- SCQ -------------------------------------------------------------------------------------------------------------


def toy(size: Size) -> Row:
    """Figure 3: two axes of variances 4 and 1, one bit: the direction against the scale, and the loss."""
    X = np.random.default_rng(7).standard_normal((max(2000, size.rows // 10), 2)).astype(np.float32) * [2, 1]
    angles, losses = [], []
    for scale in (0.2, 0.5, 1.0, 1.5):
        hasher = nk.OnE(1, scale=scale, random_state=0).fit(X.astype(np.float32))
        v = np.asarray(hasher.projection_)[:, 0]
        angles.append(float(np.degrees(np.arccos(min(1.0, abs(v[0]) / np.linalg.norm(v))))))
        losses.append(float(hasher.quantization_error(X.astype(np.float32))))
    return {"angles": angles, "losses": losses}


def seconds_of(make: Callable[..., Any], n: int, d: int, bits: int) -> float:
    X = np.random.default_rng(8).standard_normal((n, d), dtype=np.float32) * np.linspace(2, 0.5, d, dtype=np.float32)
    times = []
    for _ in range(3):
        began = time.process_time()
        make(bits, max_iter=10, tol=0.0, random_state=0).fit(X)
        times.append(time.process_time() - began)
    return min(times)


def slopes(name: str, size: Size) -> Row:
    """Table 1: the slope of a fit's CPU seconds in n, d and L, ten iterations."""
    make, n = {"OgE": nk.OgE, "OnE": nk.OnE}[name], size.rows // 5

    def slope(first: tuple[int, int, int], last: tuple[int, int, int]) -> float:
        ratio = max(b / a for a, b in zip(first, last, strict=True))
        return math.log(seconds_of(make, *last) / seconds_of(make, *first)) / math.log(ratio)

    return {
        "n": slope((n, 128, 32), (4 * n, 128, 32)),
        "d": slope((n, 128, 32), (n, 512, 32)),
        "L": slope((n, 256, 16), (n, 256, 64)),
    }


def hundred_thousand(size: Size) -> Row:
    """Fig. 5's "just over a minute" of OnE for 100,000 x 512, fifty iterations; seconds to encode, and the product."""
    X = np.random.default_rng(9).standard_normal((size.rows, 512), dtype=np.float32) * np.linspace(
        2, 0.5, 512, dtype=np.float32
    )
    began = time.process_time()
    hasher = nk.OnE(32, max_iter=50, tol=0.0, random_state=0).fit(X)
    spent, P = time.process_time() - began, np.ascontiguousarray(hasher.projection_, dtype=np.float32)
    times = []
    for function in (hasher.encode, lambda rows: rows @ P):
        function(X)
        began = time.process_time()
        function(X)
        times.append(time.process_time() - began)
    return {"rows": size.rows, "fit": spent, "encode": times[0], "product": times[1]}


def other_lengths(data: Path, size: Size, bits: int, factor: float, seed: int) -> Row:
    """Eq. 25's scale at another length, network features, validation images."""
    f = KINDS["network"](data) if size.rows > 5000 else KINDS["raw"](data)
    f = Features(f.name, f.base[: size.rows], f.base_labels[: size.rows], f.queries, f.query_labels)
    v = validation(f, seed)
    eq25 = nk.PCAHash(bits).fit(v.base).scale_
    return {"map": measured(nk.OnE(bits, scale=float(factor * eq25), random_state=seed), v)["map"]}


# -- ESL -------------------------------------------------------------------------------------------------------------


def value_and_gradient(data: Path, size: Size) -> Iterator[Job]:
    """Eqs. 15 and 28: CPU milliseconds of one function value and of one gradient, 100 random pairs a row, k = 64."""
    del data
    for m in (2000, 8000) if size.rows > 5000 else (500, 1000):
        yield Job({"m": m}, partial(all_pairs_ms, m))


def all_pairs_ms(m: int) -> Row:
    rng = np.random.default_rng(0)
    pairs = nk.Interactions.from_pairs(np.repeat(np.arange(m), 100), rng.integers(0, m, 100 * m)).matrix()
    loss = nk.embedding.AllPairsLoss(pairs, omega=0.01, labels=1.0)
    P, Q = (torch.from_numpy(rng.standard_normal((n, 64), dtype=np.float32)) / 8 for n in pairs.shape)
    return median_ms({"value": lambda: loss.at(P, Q).value(), "gradient": lambda: loss.gradient(P, Q)}, 5)


# -- Flows -----------------------------------------------------------------------------------------------------------


def trials(version: int, s: int, size: Size) -> Row:
    """Lemma 3.4, Theorem 3.6: draws until a subtournament is accepted, and |T_s| / lambda."""
    d, generator = 12, torch.Generator().manual_seed(s)
    H = torch.rand(d, d, generator=generator, dtype=torch.float64) + 0.5
    H = (H + H.T).fill_diagonal_(0)
    rho = 1.0
    if version == 2:
        upper = H[*torch.triu_indices(d, d, 1)]
        alpha, beta = 1.0, float(upper.min() / upper.max())
        rho = s / (d * alpha * beta)
    counts, norm = [], float(H.sum())
    for _ in range(size.draws):
        count, accepted = 0, False
        while not accepted:
            kept = 2 * float(kept_weight(H, uniform_components(d, s, generator)))
            count += 1
            accepted = float(torch.rand((), generator=generator)) < kept / (rho * norm)
        counts.append(count)
    expected = rho * (d - 1) / (s - 1)
    return {"mean": float(np.mean(counts)), "error": float(np.std(counts) / len(counts) ** 0.5), "expected": expected}


D = 6  # F(X) = tr(A X B X^T), symmetric A, B, is maximised over O(D): L = 2 |A| |B| in spectral norms


def mean_estimate(Omega: Tensor) -> tuple[Tensor, float]:
    """E hat Omega and E |hat Omega|^2 over every matching, each pair scaled by d - 1."""
    d, total, square = len(Omega), torch.zeros_like(Omega), 0.0
    every = matchings(d)
    for pairs in every:
        estimate = torch.zeros_like(Omega)
        for i, j in pairs:
            estimate[i, j], estimate[j, i] = (d - 1) * Omega[i, j], (d - 1) * Omega[j, i]
        total, square = total + estimate, square + float(estimate.square().sum())
    return total / len(every), square / len(every)


def theorem_5_1(size: Size) -> Row:
    """The conditions' worst cases over random points, and both sides of the bound.

    F* pairs the sorted eigenvalues, |Omega|^2 <= 16 |A|_F^2 |B|^2, and a uniform matching (s = 2) scaled by d - 1 has
    E |hat Omega|^2 = (d - 1) |Omega|^2.
    """
    torch.manual_seed(0)
    A, B = (M + M.T for M in torch.randn(2, D, D, dtype=torch.float64))
    norm_A, norm_B = (float(torch.linalg.matrix_norm(M, 2)) for M in (A, B))
    points = haar_orthogonal(size.chains, D, D, random_state=1, dtype=torch.float64)
    gradients = 2 * A @ points @ B
    gaps, moves = gradients[1:] - gradients[:-1], points[1:] - points[:-1]
    L = 2 * norm_A * norm_B
    lipschitz = float((torch.linalg.matrix_norm(gaps) / torch.linalg.matrix_norm(moves)).max())
    bound = 16 * float(A.square().sum()) * norm_B**2 * (D - 1)
    Omega = left_skew(points[0], gradients[0])
    mean, square = mean_estimate(Omega)
    largest = max((D - 1) * float(left_skew(X, G).square().sum()) for X, G in zip(points, gradients, strict=True))
    return {
        "L": L, "largest ratio": lipschitz, "sigma^2": bound, "largest E |estimate|^2": largest,
        "bias": float((mean - Omega).abs().max()),
        "E |estimate|^2 over |Omega|^2": square / float(Omega.square().sum()),
        "steps": size.steps, "chains": size.chains, **bounds(A, B, points[0], L, bound, size),
    }  # fmt: skip


def bounds(A: Tensor, B: Tensor, start: Tensor, L: float, sigma2: float, size: Size) -> dict[str, float]:
    """The least mean squared gradient along the chains, and the bound with the step length that makes it least."""
    best = float((torch.linalg.eigvalsh(A) * torch.linalg.eigvalsh(B)).sum())
    gap = best - float((A * (start @ B @ start.T)).sum())
    constant = sigma2 * ((2 * D**0.5 + 1) * L + float(torch.linalg.matrix_norm(2 * A @ B)))
    eta = (2 * gap / constant / (size.steps + 1)) ** 0.5
    X = nn.Parameter(start.repeat(size.chains, 1, 1))
    optimizer = StochasticFlow([X], eta, 2, maximize=True)
    squares = []
    for _ in range(size.steps + 1):
        X.grad = 2 * A @ X.detach() @ B
        Omega = X.grad @ X.detach().mT
        squares.append(float((Omega - Omega.mT).square().sum((1, 2)).mean()))
        optimizer.step()
    right = 2 * gap / (eta * (size.steps + 1)) + constant * eta
    return {"eta": eta, "first": squares[0], "left": min(squares), "right": right}


def theorem(data: Path, size: Size) -> Iterator[Job]:
    """Flows, Theorem 5.1."""
    del data
    yield Job({"d": D}, partial(theorem_5_1, size))


def jobs(data: Path, size: Size) -> Iterator[Job]:
    """Every claim of the four papers, by its name."""
    made: dict[tuple[str, str], Callable[[], Row]] = {
        ("GCD", "Lemma 1"): partial(hurwitz, size),
        ("GCD", "Lemma 2"): partial(commuting, size),
        ("GCD", "Lemma 3"): partial(descent, size),
        ("GCD", "Theorem 1"): partial(sublinear, size),
        **{("SVRG-SBB", kind): partial(convergence, kind, size)
           for kind in ("Lemma 1", "Theorem 1", "Theorem 2", "Theorem 3", "Corollary 1")},
        **{("SVRG-SBB", f"Lemma 4, {loss}"): partial(lipschitz, loss, size)
           for loss in ("gnmds", "ckl", "ste", "t-ste")},
        ("SCQ", "Figure 3"): partial(toy, size),
        **{("SCQ", f"Table 1, {name}"): partial(slopes, name, size) for name in ("OgE", "OnE")},
        ("SCQ", "100,000 rows"): partial(hundred_thousand, size),
        **{("SCQ", f"eq. 25, {bits} bits, {factor:g}, seed {seed}"):
           partial(other_lengths, data, size, bits, factor, seed)
           for bits, factor, seed in product(size.bits, (0.5, 1.0, 2.0, 4.0, 8.0), range(size.seeds))},
        **{("Flows", f"trials, version {version}, s = {s}"): partial(trials, version, s, size)
           for version, s in ((1, 2), (1, 3), (1, 4), (2, 2), (2, 4))},
    }  # fmt: skip
    for (paper, claim), function in made.items():
        yield Job({"paper": paper, "claim": claim}, function)
