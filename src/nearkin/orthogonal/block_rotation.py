"""Orthogonal fine-tuning: a learned block-diagonal rotation of the inputs or outputs of a frozen linear layer.

Of Qiu et al., "Controlling Text-to-Image Diffusion by Orthogonal Finetuning" (2023), with the blocks that PEFT's OFT
has: R = (I + Q)(I - Q)^-1 (Cayley), Q skew. PEFT cuts the series of that inverse after Q^4, so its R is not orthogonal.
Here R is exact: one solve. Its derivative is dR = (R + I) dQ (R + I) / 2, so the gradient costs two products."""

# pyright: reportUnknownMemberType=false

from typing import Any, cast

import torch
from torch import Tensor, nn

from nearkin._check import check_choice, check_instance, check_integer
from nearkin.orthogonal.optimizer import DTYPES, without_autocast
from nearkin.orthogonal.parametrization import is_traced
from nearkin.orthogonal.retraction import cayley

SIDES = ("inputs", "outputs")


class BlockRotation(nn.Module):
    """Rotate vectors (..., d) by a trained block-diagonal rotation, initially the identity: x -> x R.

    Before a linear layer, `layer(rotation(x))`, it is the layer with weight W R^T; after it, `rotation(layer(x))`, with
    R^T W. Train `rotation.weight` by any optimizer and freeze the layer. `merge` writes R into the layer's weight.

    Its `state_dict` is that of PEFT's OFT: the key "weight", for each block the part of Q above the diagonal. PEFT's
    default R is the series of ours, cut off; with `use_cayley_neumann=False` PEFT uses R^T.

    Parameters
    ----------
    d: width of the vectors.
    block_size: side of a block, from 2 to d, that divides d.
    dtype, device: of the weight. R is computed in float32 at least and used in the type of x.

    References
    ----------
    Qiu et al. (2023), Controlling text-to-image diffusion by orthogonal finetuning (OFT), arXiv:2306.07280.

    Examples
    --------
    >>> import torch, nearkin as nk
    >>> layer = torch.nn.Linear(8, 3).requires_grad_(False)
    >>> rotation = nk.orthogonal.BlockRotation(8, block_size=4)
    >>> optimizer = torch.optim.Adam(rotation.parameters(), lr=0.1)
    >>> layer(rotation(torch.ones(2, 8))).square().sum().backward()
    >>> _ = optimizer.step()
    >>> nk.orthogonal.is_orthogonal(rotation.rotations(), 1e-6)
    True
    >>> before = layer(rotation(torch.ones(2, 8)))
    >>> rotation.merge(layer)
    >>> bool(torch.allclose(layer(torch.ones(2, 8)), before, atol=1e-5))
    True
    """

    def __init__(
        self, d: int, block_size: int, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> None:
        super().__init__()
        self.d: int = check_integer(d, "d", low=2)
        self.block_size: int = check_integer(block_size, "block_size", low=2)
        if d % block_size:
            sides = [side for side in range(2, d + 1) if d % side == 0]
            nearest = min(sides, key=lambda side: abs(side - block_size))
            raise ValueError(f"block_size is {block_size}; it must divide d = {d}, type block_size={nearest}")
        dtype = check_choice(torch.get_default_dtype() if dtype is None else dtype, "dtype", DTYPES)
        shape = (d // block_size, block_size * (block_size - 1) // 2)
        try:
            self.weight: nn.Parameter = nn.Parameter(torch.zeros(shape, dtype=dtype, device=device))
        except (AssertionError, RuntimeError) as error:  # torch's, for one that is unknown, not there or too small
            raise ValueError(f"device is {device!r}, which has no {shape} numbers ({error}); type 'cpu'") from error
        i, j = torch.triu_indices(block_size, block_size, 1, device=device)
        places = torch.full((block_size, block_size), 2 * len(i), device=device)  # in [entries, -entries, 0]
        places[i, j], places[j, i] = torch.arange(2 * len(i), device=device).chunk(2)
        self.register_buffer("places", places.flatten(), persistent=False)
        self.register_buffer("above", i * block_size + j, persistent=False)

    def extra_repr(self) -> str:
        """Return the arguments for `repr`."""
        return f"{self.d}, block_size={self.block_size}"

    def rotations(self) -> Tensor:
        """Return the blocks of R (d / block_size, block_size, block_size), in float64 or float32."""
        made = cast(Any, _traced_cayley if is_traced() else _Cayley.apply)
        return cast(Tensor, made(self.weight, self.places, self.above, self.block_size))

    def forward(self, x: Tensor) -> Tensor:
        """Return x R for x (..., d)."""
        check_instance(x, "x", Tensor)
        if not is_traced() and (x.ndim < 1 or x.shape[-1] != self.d):  # traced sizes may be tensors
            raise ValueError(f"x has shape {tuple(x.shape)}; it must be (..., {self.d})")
        return _turned(x, self.rotations().to(x.dtype))

    def merge(self, layer: nn.Linear, side: str = "inputs") -> None:
        """Write R into `layer`, so that it alone is layer(rotation(x)), or with side="outputs" rotation(layer(x))."""
        self._write(layer, side, self.rotations().detach())

    def unmerge(self, layer: nn.Linear, side: str = "inputs") -> None:
        """Undo `merge`: multiply the weight of `layer` by R's transpose."""
        self._write(layer, side, self.rotations().detach().mT)

    @torch.no_grad()
    def _write(self, layer: nn.Linear, side: str, R: Tensor) -> None:
        check_choice(side, "side", SIDES)
        W = check_instance(layer, "layer", nn.Linear).weight
        if W.shape[-1 if side == "inputs" else 0] != self.d:
            raise ValueError(
                f"layer.weight has shape {tuple(W.shape)}; with side={side!r} it must have {self.d} {side}"
            )
        if side == "inputs":
            W.copy_(_turned(W.to(R.dtype), R.mT))
            return
        W.copy_(_turned(W.to(R.dtype).mT, R).mT)
        if layer.bias is not None:  # pyright: ignore[reportUnnecessaryComparison]
            layer.bias.copy_(_turned(layer.bias.to(R.dtype), R))


def _turned(x: Tensor, R: Tensor) -> Tensor:
    """Return x (..., d) times the block-diagonal matrix of R (r, s, s)."""
    blocks = x.reshape(-1, *R.shape[:2]).transpose(0, 1)
    return torch.bmm(blocks, R).transpose(0, 1).reshape(x.shape)  # einsum makes the same calls and a few more


class _Cayley(torch.autograd.Function):
    """From the entries above the diagonals (r, s (s - 1) / 2) to the rotations (r, s, s)."""

    @staticmethod
    def forward(entries: Tensor, places: Tensor, above: Tensor, s: int) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        del above
        return _rotations(entries, places, s)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        entries, places, above, ctx.s = inputs
        ctx.dtype = entries.dtype
        ctx.save_for_backward(output, places, above)
        ctx.save_for_forward(output, places, above)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        R, _, above = ctx.saved_tensors
        return _pulled_back(R, gradients[0], above).to(ctx.dtype), None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        R, places, _ = ctx.saved_tensors
        S = R + torch.eye(ctx.s, dtype=R.dtype, device=R.device)
        with without_autocast(R):
            return torch.bmm(torch.bmm(S, _skew(tangents[0], places, ctx.s)), S) / 2

    @staticmethod
    def vmap(info: Any, in_dims: Any, entries: Tensor, places: Tensor, above: Tensor, s: int) -> tuple[Tensor, int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        entries = entries.movedim(in_dims[0], 0)
        R = cast(Tensor, _Cayley.apply(entries.flatten(0, 1), places, above, s))
        return R.view(info.batch_size, -1, s, s), 0


def _skew(entries: Tensor, places: Tensor, s: int) -> Tensor:
    """The skew matrices (r, s, s) of entries above the diagonal, in float64 or float32."""
    wide = entries if entries.dtype == torch.float64 else entries.float()
    signed = torch.cat([wide, -wide, wide.new_zeros(len(wide), 1)], 1)
    return signed.index_select(1, places).view(-1, s, s)


def _rotations(entries: Tensor, places: Tensor, s: int) -> Tensor:
    """The rotations (r, s, s) of entries above the diagonal, also under autocast in float64 or float32."""
    with without_autocast(entries):
        return cayley(_skew(entries, places, s))


def _pulled_back(R: Tensor, gradient: Tensor, above: Tensor) -> Tensor:
    """The gradient of the entries from that of R (r, s, s)."""
    P = R.mT + torch.eye(R.shape[-1], dtype=R.dtype, device=R.device)
    with without_autocast(R):
        G = torch.bmm(torch.bmm(P, gradient), P)
    return (G - G.mT).flatten(1).index_select(1, above) / 2


@torch.library.custom_op("nearkin::cayley", mutates_args=())
def _traced_cayley(entries: Tensor, places: Tensor, above: Tensor, s: int) -> Tensor:
    """`_Cayley` for compilers and tracers, which follow no branch that depends on numbers: one operator to them."""
    del above
    return _rotations(entries, places, s)


@_traced_cayley.register_fake
def _(entries: Tensor, places: Tensor, above: Tensor, s: int) -> Tensor:
    del places, above
    dtype = torch.float64 if entries.dtype == torch.float64 else torch.float32
    return entries.new_empty(len(entries), s, s, dtype=dtype)


def _save(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.dtype = inputs[0].dtype
    ctx.save_for_backward(output, inputs[1], inputs[2])


_traced_cayley.register_autograd(_Cayley.backward, setup_context=_save)
