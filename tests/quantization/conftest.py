import numpy as np
import pytest


@pytest.fixture(scope="session")
def vectors() -> tuple[np.ndarray, np.ndarray]:
    """Correlated rows with a large mean, training and test: rotations matter here, and so does centring."""
    rng = np.random.default_rng(1)
    mix = rng.normal(size=(32, 32)) * (np.arange(1, 33) ** -0.7)[:, None]
    X = rng.standard_t(5, size=(3000, 32)) @ mix + rng.normal(size=32) * 3
    return X[:2000].astype(np.float32), X[2000:].astype(np.float32)
