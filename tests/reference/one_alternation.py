"""SCQ's Algorithm 1 as printed, lines 6-16, in the original coordinates: slow, with explicit inverses."""

import numpy as np


def bisect(function, low, high, steps=200):
    """Root of a falling function on (low, high)."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def columns_by_alternation(X, B, tolerance=1e-13, max_rounds=100_000):
    """Columns v_1 .. v_L (d, L) for centred X (n, d) and codes B (n, L): nu by bisection, Phi by eq. 14, in turns.

    Line 15 is used with the absolute value that the paper leaves out: without it the loop ends as soon as v is too
    short. Returns the columns and the number of rounds for each.
    """
    n, d = X.shape
    gram = X.T @ X
    smallest = np.linalg.eigvalsh(gram)[0]
    V, rounds = np.empty((d, 0)), np.zeros(B.shape[1], int)
    for k in range(B.shape[1]):
        moment, phi = X.T @ B[:, k], np.zeros(k)
        for _ in range(max_rounds):
            rounds[k] += 1
            target = moment - n / 2 * V @ phi

            def excess(nu, target=target):  # eq. 8, second line
                return np.sum(np.linalg.solve(gram + n * nu * np.eye(d), target) ** 2) - 1

            low = -smallest / n
            nu = bisect(excess, low, low + np.linalg.norm(target) / n + 1)
            Z = np.linalg.inv(gram + n * nu * np.eye(d))
            phi = np.linalg.solve(n / 2 * V.T @ Z @ V, V.T @ Z @ moment) if k else phi
            v = Z @ (moment - n / 2 * V @ phi)  # eq. 12
            if abs(v @ v - 1) < tolerance:
                break
        V = np.c_[V, v]
    return V, rounds
