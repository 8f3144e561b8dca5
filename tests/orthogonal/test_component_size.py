"""The component size that follows the measured noise."""

import pytest
import torch
from torch import nn

from nearkin.linalg.haar import haar_orthogonal
from nearkin.orthogonal import StochasticFlow
from nearkin.orthogonal.component_size import component_size_for, measured_component_size, noise_ratio


@pytest.mark.parametrize(
    ("rho", "d", "size"), [(0.0, 64, 64), (0.2, 64, 64), (1.0, 64, 32), (62.0, 64, 2), (float("inf"), 5, 2)]
)
def test_sampling_is_as_noisy_as_the_gradient(rho: float, d: int, size: int) -> None:
    assert component_size_for(rho, d) == size
    if 2 < size < d:
        assert (d - size) / (size - 1) >= rho  # rounded down to a power of two, never to less noise


@pytest.mark.parametrize("true_ratio", [0.25, 4.0, 30.0])
def test_the_ratio_of_a_known_stream_is_found(true_ratio: float) -> None:
    """Gradients with a fixed mean and Gaussian noise: the median estimate over many streams is near the truth."""
    generator, d, k = torch.Generator().manual_seed(0), 40, 40
    X = haar_orthogonal(d, d, random_state=0, dtype=torch.float64)[None]
    mean = torch.randn(1, d, k, generator=generator, dtype=torch.float64)
    found = []
    for _ in range(20):
        state: dict = {}
        for step in range(1, 61):
            noise = torch.randn(1, d, k, generator=generator, dtype=torch.float64) * true_ratio**0.5
            state["step"] = step
            measured_component_size(X, mean + noise, state)
        found.append(noise_ratio(float(state["sketch_mean"].square().sum()), float(state["sketch_square"]), 60))
    median = sorted(found)[10]
    assert 0.6 * true_ratio < median < 1.7 * true_ratio, f"{median} for {true_ratio}"


def test_the_flow_without_noise_is_exact_and_with_noise_turns_pairs() -> None:
    R = haar_orthogonal(32, 32, special=True, random_state=3)
    for noise, sizes in ((0.0, {32}), (20.0, {2, 4})):
        p = nn.Parameter(haar_orthogonal(32, 32, special=True, random_state=4))
        optimizer = StochasticFlow([p], 0.01, "noise", scale="none")
        generator, seen = torch.Generator().manual_seed(0), []
        for _ in range(30):
            p.grad = p.detach() - R + noise * torch.randn(32, 32, generator=generator)
            state = optimizer.state[p]
            optimizer.step()
            probe = {name: value.clone() if torch.is_tensor(value) else value for name, value in state.items()}
            seen.append(measured_component_size(p.detach()[None], p.grad[None], probe))
        assert set(seen[10:]) <= sizes, (noise, seen)
