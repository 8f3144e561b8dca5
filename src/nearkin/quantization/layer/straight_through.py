"""The straight-through quantizer T(x) = phi(x R) R^T as one differentiable function (GCD, section 1 and eq. 1)."""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from nearkin.quantization.codebooks import assign
from nearkin.quantization.layer.centroids import on_host


def nearest(z: Tensor, codebooks: Tensor) -> Tensor:
    """Codes (b, M) int64 of rotated rows z (b, d) under codebooks (M, K, d/M): FAISS's kernels on the CPU."""
    if on_host(z):
        return torch.from_numpy(assign(z.numpy(), codebooks.numpy())).long()
    M, _, width = codebooks.shape
    blocks = z.view(len(z), M, width).transpose(0, 1)
    half_norms = codebooks.square().sum(-1) / 2
    return (torch.bmm(blocks, codebooks.transpose(1, 2)) - half_norms[:, None]).argmax(-1).T


def decode(codes: Tensor, codebooks: Tensor) -> Tensor:
    """Rotated rows (b, d) of codes (b, M)."""
    subspace = torch.arange(codebooks.shape[0], device=codes.device)
    return codebooks[subspace, codes].flatten(1)


class StraightThrough(torch.autograd.Function):
    """(x, R, C, c, turns) -> (T(x), distortion, codes), with c (b, d) the rows' coarse centroids or None.

    With z = (x - c) R, the decoded y = phi(z) and sg the stop-gradient, the two outputs are *defined* as

        T = c + (y + z - sg z) R^T
        distortion = (1/b) ||z - y||^2

    so that, for an incoming gradient g of T and g_D of the distortion, and with delta = x - T:

        dx = g + (2 g_D / b) delta                      (R R^T = 1: no matrix product)
        dC = scatter of g R - (2 g_D / b) (z - y) to the chosen centroids
        dR = delta^T (g R - (2 g_D / b) y) = delta^T (g - (2 g_D / b) y R^T) R      (None unless `turns`)

    The last is the gradient up to a part normal to the rotations: only the skew part of R^T dR turns R, and
    skew(z^T h - y^T h) = skew((z - y)^T h) as y^T y is symmetric; two products instead of four. Coarse
    centroids take no gradient.
    """

    @staticmethod
    def forward(
        ctx: FunctionCtx, x: Tensor, R: Tensor, C: Tensor, c: Tensor | None, turns: bool = True
    ) -> tuple[Tensor, ...]:
        rows = x if c is None else x - c
        z = rows @ R
        codes = nearest(z, C)
        y = decode(codes, C)
        T = y @ R.T if c is None else torch.addmm(c, y, R.T)
        ctx.save_for_backward(x, R, y, z, T, codes, c)  # pyright: ignore[reportArgumentType]
        ctx.shape, ctx.turns = C.shape, turns
        ctx.mark_non_differentiable(codes)
        return T, (z - y).square().sum() / max(len(x), 1), codes

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        g, g_distortion, _ = gradients
        x, R, y, z, T, codes, c = ctx.saved_tensors
        need_x, need_R, need_C = ctx.needs_input_grad[:3]
        share = 2 * g_distortion / max(len(x), 1)
        delta = x - T
        dx = torch.addcmul(g, delta, share.expand_as(delta)) if need_x else None
        dC = None
        if need_C:
            M, K, width = ctx.shape
            places = (codes + K * torch.arange(M, device=codes.device)).reshape(-1)
            sums = (g @ R - share * (z - y)).reshape(-1, width)
            dC = sums.new_zeros(M * K, width).index_add_(0, places, sums).view(ctx.shape)
        dR = None
        if need_R and ctx.turns:
            h = g - share * (T if c is None else T - c)  # g - (2 g_D / b) y R^T
            # one product over the rows if they are many
            dR = delta.T @ (h @ R) if len(h) < len(R) else (delta.T @ h) @ R
        return dx, dR, dC, None, None
