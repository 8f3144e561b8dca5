"""Block-diagonal adapters are exactly orthogonal, merge and unmerge, and share PEFT's numbers."""

from typing import Any

import torch
from torch import Tensor, nn

from nearkin.linalg.orthonormal import orthogonality_error
from nearkin.orthogonal import BlockRotation
from nearkin.orthogonal.retraction import cayley
from tests.covering import each
from tests.refusals import each_refused


def moved(d: int, block_size: int, norm: float = 0.5, dtype: torch.dtype = torch.float32) -> BlockRotation:
    rotation = BlockRotation(d, block_size, dtype=dtype)
    generator = torch.Generator().manual_seed(d)
    entries = torch.randn(rotation.weight.shape, generator=generator, dtype=torch.float64)
    rotation.weight.data.copy_(entries * norm / (2 * block_size**0.5))
    return rotation


def skew(rotation: BlockRotation) -> Tensor:
    """Q as PEFT makes it from its weights."""
    s = rotation.block_size
    Q = torch.zeros(len(rotation.weight), s, s, dtype=torch.float64)
    i, j = torch.triu_indices(s, s, 1)
    Q[:, i, j] = rotation.weight.detach().double()
    return Q - Q.mT


@each("norm", [0.0, 1e-4, 0.3, 1.0, 3.0, 8.0, 1e3, 1e12])
@each(("d", "s"), [(6, 2), (15, 5), (64, 32)])
def test_it_is_cayleys_map_and_orthogonal_at_every_norm(norm: float, d: int, s: int) -> None:
    for dtype, bound in ((torch.float32, 1e-5), (torch.bfloat16, 1e-5), (torch.float64, 1e-12)):
        rotation = moved(d, s, norm, dtype)
        R, identity = rotation.rotations().detach(), torch.eye(s, dtype=torch.float64)
        assert orthogonality_error(R.double()) < bound
        if norm <= 8:
            Q = skew(rotation)
            exact = torch.linalg.solve(identity - Q, identity + Q)
            torch.testing.assert_close(R.double(), exact, rtol=0, atol=1e3 * bound if dtype.itemsize == 8 else 2e-5)


def test_the_gradient_is_that_of_cayleys_map() -> None:
    rotation = moved(12, 4, 1.0, torch.float64)
    x = torch.randn(3, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight = rotation.weight.detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda w: torch.func.functional_call(rotation, {"weight": w}, x), weight)


@each("side", ["inputs", "outputs"])
def test_merging_writes_the_rotation_into_the_layer_and_unmerging_takes_it_out(side: str) -> None:
    layer, rotation, x = nn.Linear(12, 12), moved(12, 3), torch.randn(5, 12)
    before = [p.detach().clone() for p in layer.parameters()]
    expected = layer(rotation(x)) if side == "inputs" else rotation(layer(x))
    rotation.merge(layer, side)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=2e-6)
    rotation.unmerge(layer, side)
    for now, then in zip(layer.parameters(), before, strict=True):
        torch.testing.assert_close(now.detach(), then, rtol=0, atol=1e-6)


def test_its_state_is_pefts() -> None:
    """The key, the shape, and to PEFT's order of the series the same rotation."""
    rotation = moved(12, 4, 0.05)
    state = rotation.state_dict()
    assert list(state) == ["weight"]
    assert state["weight"].shape == (3, 6)
    Q = skew(rotation)
    series = torch.eye(4, dtype=torch.float64) + 2 * Q + 2 * Q @ Q + 2 * Q @ Q @ Q + Q @ Q @ Q @ Q
    torch.testing.assert_close(rotation.rotations().detach().double(), series, rtol=0, atol=1e-6)
    other, x = BlockRotation(12, 4), torch.randn(4, 3, 12)
    assert torch.equal(other(x), x)  # it starts as the identity
    assert other(x[:0]).shape == (0, 3, 12)
    other.load_state_dict(state)
    assert torch.equal(other.weight, rotation.weight)


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: BlockRotation(12, 5), ValueError, r"block_size is 5; it must divide d = 12, type block_size=4"),
    (lambda: BlockRotation(1, 1), ValueError, "d is 1"),
    (lambda: BlockRotation(12, 1), ValueError, "block_size is 1"),
    (lambda: BlockRotation(4, 2, dtype=torch.int32), ValueError, "dtype is torch.int32"),
    (lambda: BlockRotation(4, 2, device="gpu"), ValueError, "device is 'gpu', which .*; type 'cpu'"),
    (lambda: BlockRotation(4, 2)(torch.ones(3, 5)), ValueError, r"x has shape \(3, 5\)"),
    (lambda: BlockRotation(4, 2).merge(nn.Linear(3, 4)), ValueError, r"layer.weight has shape \(4, 3\)"),
    (lambda: BlockRotation(4, 2).merge(nn.Linear(4, 3), "both"), ValueError, "side is 'both'"),
    (lambda: cayley(torch.full((1, 2, 2), torch.nan)), ValueError, "a skew matrix contains NaN or infinity"),
]


def test_bad_input_is_refused() -> None:
    each_refused(BAD)


def test_under_autocast_rotations_and_gradients_are_those_without() -> None:
    """They were products in bfloat16, off the orthogonal matrices by 1e-2."""
    block, G = BlockRotation(8, 4), torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
    nn.init.normal_(block.weight, std=0.3, generator=torch.Generator().manual_seed(1))
    plain = block.rotations()
    (expected,) = torch.autograd.grad((plain * G).sum(), block.weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = block.rotations()
        (gradient,) = torch.autograd.grad((found * G).sum(), block.weight)
        assert block(torch.ones(2, 8)).dtype == torch.bfloat16
        assert orthogonality_error(found) < 1e-6
    assert torch.equal(found, plain)
    torch.testing.assert_close(gradient, expected)
