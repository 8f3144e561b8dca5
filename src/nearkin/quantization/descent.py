"""Gradient steps of a rotation that only have to be near the best: normalized, with momentum, kept on O(d) by products.

`nearkin.orthogonal` has the same steps and better ones as optimizers of torch, which takes longer to load than the few
hundred steps needed here, on gradients that NumPy has.
"""

from collections.abc import Callable

import numpy as np

from nearkin.linalg.procrustes import nearest_orthogonal, newton_schulz

_MOMENTUM, _MEMORY = 0.9, 0.99  # of the gradient's skew part, and of its size: those of Adam, one size for all entries


def descend(R: np.ndarray, gradient: Callable[[np.ndarray], np.ndarray], steps: int, rate: float) -> np.ndarray:
    """R (d, d) float32 after steps R <- R (I - a S), S skew, at rates that fall linearly from `rate` to 0.

    `gradient(R)` (d, d) may be of other rows at every step. S = R^T G - G^T R, by its running mean and its running
    size, so that the spectral norm of a S is about `rate` at first, whatever d and the loss are. Newton and Schulz's
    product brings R back to O(d); at the end its polar factor does.
    """
    d = len(R)
    mean, square, eps = np.zeros((d, d), np.float32), 0.0, float(np.finfo(np.float32).tiny)
    for step in range(steps):
        half = R.T @ gradient(R)
        skew = half - half.T
        mean = _MOMENTUM * mean + (1 - _MOMENTUM) * skew
        square = _MEMORY * square + (1 - _MEMORY) * float(np.square(skew).mean())
        size = np.sqrt(square / (1 - _MEMORY ** (step + 1))) + eps
        length = rate * (1 - step / steps) / (2 * np.sqrt(d) * (1 - _MOMENTUM ** (step + 1)) * size)
        R = newton_schulz(R - R @ (np.float32(length) * mean))
    return nearest_orthogonal(R.astype(np.float64)).astype(np.float32)
