"""Tasks that no default was tuned on: joint diagonalisation, ICA, copying by an RNN, and sorting."""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.orthogonal.problems import Problem
from nearkin.linalg.haar import haar_orthogonal


def diagonalisation(seed: int, data: Path, d: int = 64, matrices: int = 64, batch: int = 8) -> Problem:
    """One X that makes X^T A_m X diagonal for noisy A_m = R D_m R^T, from batches of matrices; the loss is what is left
    off the diagonals, as a share of the start's."""
    del data
    generator = torch.Generator().manual_seed(seed)
    R = haar_orthogonal(d, d, special=True, random_state=seed)
    noise = 0.02 * torch.randn(matrices, d, d, generator=generator)
    A = R @ torch.diag_embed(torch.randn(matrices, d, generator=generator)) @ R.mT + noise + noise.mT
    start = haar_orthogonal(d, d, special=True, random_state=seed + 100)

    def off_diagonal(X: Tensor, B: Tensor) -> Tensor:
        turned = X.mT @ B @ X
        return (B.square().sum((-2, -1)) - turned.diagonal(dim1=-2, dim2=-1).square().sum(-1)).mean() / d

    floor, first = float(off_diagonal(R, A)), float(off_diagonal(start, A))

    def batch_loss(weights: list[Tensor]) -> Tensor:
        return off_diagonal(weights[0], A[torch.randint(matrices, (batch,), generator=generator)])

    def full_loss(weights: list[Tensor]) -> float:
        return (float(off_diagonal(weights[0], A)) - floor) / (first - floor)

    return Problem(seed, [start], batch_loss, full_loss, 0.05, lr=2.0, check_every=2)


def ica(seed: int, data: Path, d: int = 64, n: int = 20000, batch: int = 256) -> Problem:
    """Unmix Laplace sources turned by a rotation: the mean of log cosh, as a share of the gap at the start."""
    del data
    generator = torch.Generator().manual_seed(seed)
    uniform = torch.rand(n, d, generator=generator) - 0.5
    sources = -uniform.sign() * torch.log1p(-2 * uniform.abs().clamp_max(0.499999)) / 2**0.5
    R = haar_orthogonal(d, d, special=True, random_state=seed)
    A = sources @ R.mT
    start = haar_orthogonal(d, d, special=True, random_state=seed + 100)

    def contrast(X: Tensor, rows: Tensor) -> Tensor:
        projected = rows @ X
        return (F.softplus(-2 * projected) + projected).mean(0).sum()  # log cosh but for a constant

    check = A[:4000]
    floor, first = float(contrast(R, check)), float(contrast(start, check))

    def batch_loss(weights: list[Tensor]) -> Tensor:
        return contrast(weights[0], A[torch.randint(n, (batch,), generator=generator)])

    def full_loss(weights: list[Tensor]) -> float:
        return (float(contrast(weights[0], check)) - floor) / (first - floor)

    return Problem(seed, [start], batch_loss, full_loss, 0.1, lr=0.5, check_every=5)


def sorting(seed: int, data: Path, d: int = 256) -> Problem:
    """Maximise tr(N X^T Q X), Q and N diagonal (flows, section 9.3): the gradient costs d^2. To 1 % of the gap."""
    del data
    generator = torch.Generator().manual_seed(seed)
    q = torch.rand(d, generator=generator)
    n = torch.linspace(0, 1, d)
    best = float((q.sort().values * n).sum())
    start = haar_orthogonal(d, d, special=True, random_state=seed + 100)

    def value(X: Tensor) -> Tensor:
        return torch.einsum("ij,i,j->", X.square(), q, n)

    first = float(value(start))

    def batch_loss(weights: list[Tensor]) -> Tensor:
        return -value(weights[0])

    def full_loss(weights: list[Tensor]) -> float:
        return (best - float(value(weights[0]))) / (best - first)

    return Problem(seed, [start], batch_loss, full_loss, 0.01, lr=0.5, check_every=5)


def copying(seed: int, data: Path, width: int = 48, symbols: int = 2, delay: int = 5, batch: int = 32) -> Problem:
    """An RNN with an orthogonal hidden matrix repeats symbols after a delay; to half the loss of one without memory."""
    del data
    generator = torch.Generator().manual_seed(seed)
    n_symbols = 8
    V = nn.Parameter(torch.randn(n_symbols + 2, width, generator=generator) / 3)
    U = nn.Parameter(torch.randn(width, n_symbols + 2, generator=generator) / width**0.5)
    start = haar_orthogonal(width, width, special=True, random_state=seed + 100)
    length = 2 * symbols + delay

    def draw(count: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        message = torch.randint(n_symbols, (count, symbols), generator=source)
        x = torch.full((count, length), n_symbols)
        y = x.clone()
        x[:, :symbols], x[:, symbols + delay - 1], y[:, symbols + delay :] = message, n_symbols + 1, message
        return x, y

    def loss(W: Tensor, x: Tensor, y: Tensor) -> Tensor:
        drive, h, states = V[x], torch.zeros(len(x), width), []
        for t in range(length):
            h = torch.relu(h @ W + drive[:, t])
            states.append(h)
        return F.cross_entropy((torch.stack(states, 1) @ U).flatten(0, 1), y.flatten())

    check = draw(256, torch.Generator().manual_seed(seed + 1000))

    def batch_loss(weights: list[Tensor]) -> Tensor:
        return loss(weights[0], *draw(batch, generator))

    def full_loss(weights: list[Tensor]) -> float:
        return float(loss(weights[0], *check))

    return Problem(
        seed, [start], batch_loss, full_loss, 0.23, lr=0.05, others=[V, U], other_lr=0.1, check_every=10, seconds=3.0
    )
