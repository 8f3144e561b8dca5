"""Seeds: one argument, `random_state`, becomes a NumPy or a torch generator; no global state is read or written."""

from __future__ import annotations  # torch is named, not loaded

from typing import TYPE_CHECKING

import numpy as np

from nearkin._types import Seed

if TYPE_CHECKING:
    import torch


def numpy_generator(random_state: Seed = None) -> np.random.Generator:
    """Return a `numpy.random.Generator` from None, an int, a Generator (used unchanged) or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is not None and not isinstance(random_state, int | np.integer | np.random.Generator):
        raise TypeError(
            f"random_state is {random_state!r}; it must be None, an integer, numpy.random.default_rng(...) "
            "or a numpy.random.RandomState"
        )
    return np.random.default_rng(random_state)


def draw_seed(generator: np.random.Generator) -> int:
    """Draw a seed in [0, 2^31 - 1) for libraries such as FAISS or torch."""
    return int(generator.integers(2**31 - 1))


def torch_generator(random_state: Seed | torch.Generator = None) -> torch.Generator:
    """Return a `torch.Generator` on the CPU from None, an int, a NumPy generator or a torch.Generator (unchanged)."""
    import torch  # the only torch user at this level

    if isinstance(random_state, torch.Generator):
        return random_state
    return torch.Generator().manual_seed(draw_seed(numpy_generator(random_state)))
