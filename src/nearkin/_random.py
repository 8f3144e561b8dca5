"""Seeds: one argument, `random_state`, becomes a NumPy or a torch generator; no global state is read or written."""

from __future__ import annotations  # torch is named, not loaded

from typing import TYPE_CHECKING

import numpy as np

from nearkin._types import Seed

if TYPE_CHECKING:
    import torch


def numpy_generator(random_state: Seed = None) -> np.random.Generator:
    """Return a `numpy.random.Generator` from None, an int, a Generator (used as it is) or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is not None and not isinstance(random_state, int | np.integer | np.random.Generator):
        raise TypeError(
            f"random_state is {random_state!r}; it must be None, an integer, numpy.random.default_rng(...) "
            "or a numpy.random.RandomState"
        )
    return np.random.default_rng(random_state)


def draw_seed(generator: np.random.Generator) -> int:
    """Draw a seed in [0, 2^31 - 1) for a library that wants one, such as FAISS or torch."""
    return int(generator.integers(2**31 - 1))


def torch_generator(random_state: Seed | torch.Generator = None) -> torch.Generator:
    """Return a `torch.Generator` on the CPU from None, an int, a NumPy generator or a torch.Generator (as it is)."""
    import torch  # the only torch user at this level

    if isinstance(random_state, torch.Generator):
        return random_state
    return torch.Generator().manual_seed(draw_seed(numpy_generator(random_state)))


def torch_normal(n: int, random_state: Seed = None) -> np.ndarray:
    """What `torch.randn(n, generator=torch_generator(random_state), dtype=torch.float64)` draws, without loading torch.

    The same numbers but for the last bit. torch's stream on the CPU: 53 bits of two words of MT19937 make a uniform
    number, and Box and Muller's formula makes normal ones of blocks of sixteen, eight lengths before eight angles.
    Where sixteen does not divide n, the last sixteen are drawn again; fewer are made in pairs, angle before length.
    """
    stream = np.random.RandomState(draw_seed(numpy_generator(random_state)))

    def uniform(count: int) -> np.ndarray:
        words = stream.randint(0, 2**32, (count, 2), dtype=np.uint32).astype(np.uint64)
        return ((words[:, 0] << np.uint64(32) | words[:, 1]) & np.uint64(2**53 - 1)) * 2.0**-53

    def normal(lengths: np.ndarray, angles: np.ndarray) -> np.ndarray:
        radii, angles = np.sqrt(-2 * np.log1p(-lengths)), 2 * np.pi * angles
        return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1).ravel()

    if n < 16:
        pairs = uniform(n + n % 2).reshape(-1, 2)
        return normal(pairs[:, 1], pairs[:, 0])[:n]
    blocks = uniform(n)[: n - n % 16].reshape(-1, 2, 8)
    drawn = normal(blocks[:, 0], blocks[:, 1])
    if n % 16:
        last = uniform(16).reshape(1, 2, 8)
        drawn = np.concatenate([drawn[: n - 16], normal(last[:, 0], last[:, 1])])
    return drawn
