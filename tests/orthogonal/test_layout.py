"""Parameters of every shape are written back where they were read."""

import pytest
import torch

from nearkin.orthogonal.optimizer import as_tall, from_tall


@pytest.mark.parametrize("shape", [(5, 2), (2, 5), (4, 4), (2, 4, 4), (3, 5, 2), (3, 2, 5), (2, 3, 2, 5)])
def test_a_matrix_or_a_batch_is_seen_tall_and_written_back(shape: tuple[int, ...]) -> None:
    p = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    X = as_tall(p)
    assert X.shape[-2:] == ((4, 4) if shape[-1] == 4 else (5, 2))
    kept = p.clone()
    torch.testing.assert_close(from_tall(X.clone() + 1, p, "matrix"), kept + 1)


@pytest.mark.parametrize("shape", [(4, 2, 3, 3), (20, 2, 3, 3)])
def test_a_kernel_is_its_window_times_channels(shape: tuple[int, ...]) -> None:
    p = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    X = as_tall(p, "convolution")
    assert X.shape == (1, max(shape[0], 18), min(shape[0], 18))
    kept = p.clone()
    torch.testing.assert_close(from_tall(X.clone() * 2, p, "convolution"), kept * 2)
