"""Blocks of rows against the d x d matrices that they stand for."""

import torch

from nearkin.linalg.blocks import SMALL, skew_blocks, turn_blocks
from nearkin.linalg.skew import left_skew
from tests.covering import each

SHAPES = [(7, 7, 2), (12, 5, 3), (40, 300, 8), (33, 33, SMALL), (50, 20, SMALL + 1), (6, 6, 6), (9, 1, 4)]


def case(d: int, k: int, s: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(d + k + s)
    X, G = (torch.randn(d, k, generator=generator, dtype=dtype) for _ in range(2))
    return X, G, torch.randperm(d, generator=generator)[: d // s * s].reshape(-1, s)


@each("dtype", [torch.float32, torch.float64, torch.bfloat16])
@each(("d", "k", "s"), SHAPES)
def test_skew_blocks_are_cut_from_omega(d: int, k: int, s: int, dtype: torch.dtype) -> None:
    X, G, components = case(d, k, s, dtype)
    Omega = left_skew(X.double(), G.double())
    expected = torch.stack([Omega[c][:, c] for c in components])
    found = skew_blocks(X, G, components).double()
    torch.testing.assert_close(found, expected, rtol=0, atol=40 * float(torch.finfo(dtype).eps) * k**0.5 * 4)
    assert bool((found == -found.mT).all())


@each("dtype", [torch.float32, torch.float64])
@each(("d", "k", "s"), SHAPES)
def test_turn_blocks_is_a_block_matrix_product(d: int, k: int, s: int, dtype: torch.dtype) -> None:
    X, _, components = case(d, k, s, dtype)
    turn = torch.randn(*components.shape, s, dtype=dtype, generator=torch.Generator().manual_seed(1))
    whole = torch.eye(d, dtype=dtype)
    for rows, block in zip(components, turn, strict=True):
        whole[rows[:, None], rows[None, :]] += block
    expected = whole @ X
    turn_blocks(X, components, turn)
    torch.testing.assert_close(X, expected)


def test_nan_in_a_row_reaches_its_block_only() -> None:
    X, G, components = case(12, 5, 3, torch.float32)
    G[components[1, 0], 2] = torch.nan
    blocks = skew_blocks(X, G, components)
    assert bool(torch.isnan(blocks[1]).any())
    assert bool(torch.isfinite(blocks[[0, 2, 3]]).all())
