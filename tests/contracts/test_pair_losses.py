"""What every loss of an observed pair keeps: derivatives that are derivatives, and convexity."""

import torch

from nearkin.embedding.all_pairs.loss import LOSSES
from tests.covering import each

H = 1e-5


@each("name", LOSSES)
@each("label", [-1.0, 1.0, 3.0])
def test_derivatives_are_central_differences(name: str, label: float) -> None:
    loss = LOSSES[name]
    z = torch.linspace(-3.03, 3.07, 41, dtype=torch.float64)  # misses the hinge's corner at +-1 by more than H
    y = torch.full_like(z, label)
    first = (loss.value(y, z + H) - loss.value(y, z - H)) / (2 * H)
    second = (loss.first(y, z + H) - loss.first(y, z - H)) / (2 * H)
    torch.testing.assert_close(loss.first(y, z), first, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(loss.second(y, z), second, rtol=1e-6, atol=1e-8)


@each("name", LOSSES)
def test_losses_are_convex_and_not_negative(name: str) -> None:
    y, z = torch.tensor([-1.0, 0.0, 1.0, 5.0])[:, None], torch.linspace(-24, 24, 257)
    assert (LOSSES[name].second(*torch.broadcast_tensors(y, z)) >= 0).all()
    assert (LOSSES[name].value(y, torch.zeros(4, 1)) >= 0).all()


@each("name", LOSSES)
def test_logits_of_any_size_stay_finite(name: str) -> None:
    y, z = torch.ones(2), torch.tensor([-1e4, 1e4])
    for part in (LOSSES[name].value, LOSSES[name].first, LOSSES[name].second):
        assert torch.isfinite(part(y, z)).all()
