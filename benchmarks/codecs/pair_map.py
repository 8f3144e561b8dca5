"""Linear maps of queries and rows learned from queries and the rows that answer them, in front of any codes.

Two maps in closed form. Queries are regressed on their answers, with a ridge towards the identity: W minimises ||Q W -
A||^2 + r ||W - I||^2. The remaining difference E of a query and its answer has covariance D: along its large axes
distances are uninformative; rows and queries are scaled by D^(-a/2), so that codes use their bits for the other axes
(relevant component analysis, Bar-Hillel et al. 2005, is a = 1). Ridge r and power a are chosen on held-out queries.
"""

from typing import NamedTuple

import numpy as np

from nearkin import ProductQuantizer
from nearkin._faiss import nearest_rows

RIDGES = (0.1, 0.3, 1.0, 3.0, 10.0)  # in units of the queries' mean eigenvalue
POWERS = (0.0, 0.125, 0.25, 0.375, 0.5)
FLOOR = 0.1  # share of D's mean eigenvalue added to D, which is estimated from few pairs
ROWS, QUERIES, ROUNDS = 8_192, 1_000, 8  # that compare maps: other rows, held-out queries, rounds of their codes


class Maps(NamedTuple):
    """Rows become `X @ rows`, queries `Q @ queries`; identities, and no ridge, if nothing is gained."""

    queries: np.ndarray
    rows: np.ndarray
    ridge: float | None
    power: float


def learned_maps(X: np.ndarray, Q: np.ndarray, answer: np.ndarray, n_bytes: int, seed: int) -> Maps:
    """From rows X (n, d), queries Q (m, d) and the numbers (m,) of their answers, for product codes of n_bytes."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(Q))
    cut = min(QUERIES, len(Q) // 4)
    held, learned = np.sort(order[:cut]), np.sort(order[cut:])
    needed, place = np.unique(answer[held], return_inverse=True)
    others = np.setdiff1d(generator.permutation(len(X))[:ROWS], needed)
    compared, code_seed = X[np.concatenate([needed, others])], int(generator.integers(2**31 - 1))

    def recall(of_queries: np.ndarray, of_rows: np.ndarray, *, coded: bool = True) -> float:
        rows = compared @ of_rows
        if coded:
            K = 256 if len(rows) >= 1024 else 16
            codes = ProductQuantizer(n_bytes, K, init="random", max_iter=ROUNDS, random_state=code_seed).fit(rows)
            rows = codes.decode(codes.encode(rows))
        return float((nearest_rows(rows, Q[held] @ of_queries, 10) == place[:, None]).any(axis=1).mean())

    asked, answers = Q[learned], X[answer[learned]]
    identity = np.eye(X.shape[1], dtype=np.float32)
    ridge = max(RIDGES, key=lambda ridge: recall(*pair_maps(asked, answers, ridge, 0.0), coded=False))
    kept = [recall(*pair_maps(asked, answers, ridge, power)) for power in POWERS]
    if max(kept) <= recall(identity, identity):
        return Maps(identity, identity, None, 0.0)
    power = POWERS[int(np.argmax(kept))]
    return Maps(*pair_maps(Q, X[answer], ridge, power), ridge, power)


def pair_maps(Q: np.ndarray, A: np.ndarray, ridge: float, power: float) -> tuple[np.ndarray, np.ndarray]:
    """The maps of queries and of rows, (d, d) float32 each, from queries Q (p, d) and their answers A (p, d)."""
    W = regressed(Q, A, ridge)
    if not power:
        return W.astype(np.float32), np.eye(Q.shape[1], dtype=np.float32)
    halves = slice(0, None, 2), slice(1, None, 2)  # residuals of pairs that the regression did not see
    left = [Q[there] @ regressed(Q[here], A[here], ridge) - A[there] for here, there in (halves, halves[::-1])]
    D = sum((part.T @ part for part in left), np.zeros((Q.shape[1],) * 2)) / len(Q)
    values, axes = np.linalg.eigh(D)
    values = np.maximum(values, 0) + FLOOR * max(values.mean(), np.finfo(np.float32).tiny)
    scales = (values / np.exp(np.log(values).mean())) ** (-power / 2)
    M = (axes * scales) @ axes.T
    return (W @ M).astype(np.float32), M.astype(np.float32)


def regressed(Q: np.ndarray, A: np.ndarray, ridge: float) -> np.ndarray:
    """W (d, d) float64 of the smallest ||Q W - A||^2 + r ||W - I||^2."""
    gram, cross = (Q.T @ Q).astype(np.float64), (Q.T @ A).astype(np.float64)
    kept = (ridge * max(np.trace(gram) / len(gram), np.finfo(np.float32).tiny)) * np.eye(len(gram))
    return np.linalg.solve(gram + kept, cross + kept)
