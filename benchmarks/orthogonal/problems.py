"""The tasks of tasks.py: starting points, a stochastic loss for the steps and a full one for the curve."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

from nearkin.linalg.haar import haar_orthogonal


@dataclass
class Problem:
    seed: int
    starts: list[Tensor]  # the orthogonal weights at the start
    batch_loss: Callable[[list[Tensor]], Tensor]
    full_loss: Callable[[list[Tensor]], float]
    target: float
    lr: float  # where every method's search for a step length begins
    check_every: int = 10
    others: list[nn.Parameter] = field(default_factory=list)
    other_lr: float = 0.05
    seconds: float = 1.0  # of a run, at most


def procrustes(seed: int, data: Path, d: int = 256, batch: int = 64) -> Problem:
    """Find R from streaming batches of (a, a R + noise): ||A X - B||^2 / batch, to 1 % of the gap at the start."""
    generator = torch.Generator().manual_seed(seed)
    R = haar_orthogonal(d, d, special=True, random_state=seed)
    start = haar_orthogonal(d, d, special=True, random_state=seed + 100)
    noise = 0.01

    def batch_loss(weights: list[Tensor]) -> Tensor:
        A = torch.randn(batch, d, generator=generator)
        B = A @ R + noise * torch.randn(batch, d, generator=generator)
        return ((A @ weights[0] - B) ** 2).sum() / (2 * batch)

    def full_loss(weights: list[Tensor]) -> float:  # the expectation over batches, without the noise's share
        return float(((weights[0] - R) ** 2).sum()) / 2 / d

    return Problem(seed, [start], batch_loss, full_loss, 0.01, lr=0.5, check_every=5)


def many(seed: int, count: int, d: int, *, joined: bool) -> Problem:
    """`procrustes` for `count` small rotations at once, given as one batch or as parameters of their own."""
    generator, rows = torch.Generator().manual_seed(seed), 2 * d
    R = haar_orthogonal(count, d, d, special=True, random_state=seed)
    start = haar_orthogonal(count, d, d, special=True, random_state=seed + 100)

    def whole(weights: list[Tensor]) -> Tensor:
        return weights[0] if joined else torch.stack(weights)

    def batch_loss(weights: list[Tensor]) -> Tensor:
        A = torch.randn(count, rows, d, generator=generator)
        B = A @ R + 0.01 * torch.randn(count, rows, d, generator=generator)
        return ((A @ whole(weights) - B) ** 2).sum() / (2 * rows)

    def full_loss(weights: list[Tensor]) -> float:
        return float(((whole(weights) - R) ** 2).sum()) / 2 / d / count

    starts = [start] if joined else [X.contiguous() for X in start]
    return Problem(seed, starts, batch_loss, full_loss, 0.01, lr=0.25, check_every=2)


def heads(seed: int, data: Path) -> Problem:
    """64 rotations of side 32, as the heads of a network have them: 64 parameters."""
    del data
    return many(seed, 64, 32, joined=False)


def batch(seed: int, data: Path) -> Problem:
    """256 rotations of side 16 as one batch."""
    del data
    return many(seed, 256, 16, joined=True)


def pca(seed: int, data: Path, d: int = 1024, k: int = 64, batch: int = 64) -> Problem:
    """The leading k directions of a spectrum with a gap, from minibatches; the loss is the share of variance missed."""
    generator = torch.Generator().manual_seed(seed)
    scales = torch.cat([torch.linspace(1, 0.5, k), 0.1 * torch.linspace(1, 0.1, d - k)])
    basis = haar_orthogonal(d, d, random_state=seed)
    start = haar_orthogonal(d, k, random_state=seed + 100)
    most = float((scales[:k] ** 2).sum())
    mixing = scales[:, None] * basis.T

    def batch_loss(weights: list[Tensor]) -> Tensor:
        A = torch.randn(batch, d, generator=generator) @ mixing
        return -((A @ weights[0]) ** 2).sum() / (2 * batch)

    def full_loss(weights: list[Tensor]) -> float:
        return 1 - float(((mixing @ weights[0]) ** 2).sum()) / most

    return Problem(seed, [start], batch_loss, full_loss, 0.02, lr=1.0, check_every=5)


@lru_cache
def images(data: Path) -> tuple[Tensor, Tensor]:
    """MNIST's training images (n, p) in [0, 1] and labels, or scikit-learn's digits if `data` has no mnist.npz."""
    file = data / "mnist.npz"
    if file.exists():
        with np.load(file) as archive:
            X, y = archive["X_train"][:20000] / np.float32(255), archive["y_train"][:20000].astype(np.int64)
    else:
        digits = load_digits()
        X, y = (digits.data / 16).astype(np.float32), digits.target
    X = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
    return (X - X.mean()) / X.std(), torch.from_numpy(np.asarray(y))


def mlp(seed: int, data: Path, width: int = 100, batch: int = 128) -> Problem:
    """Two hidden layers of 100 tanh units (flows, section 6.2), both weights orthonormal; the head is free."""
    X, y = images(data)
    generator = torch.Generator().manual_seed(seed)
    p = X.shape[1]
    starts = [
        haar_orthogonal(max(p, width), min(p, width), random_state=seed),
        haar_orthogonal(width, width, random_state=seed + 1),
    ]
    if p < width:
        starts[0] = starts[0].T.contiguous()
    head = nn.Parameter(torch.randn(width, 10, generator=generator) / width**0.5)
    biases = [nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(width)), nn.Parameter(torch.zeros(10))]

    def logits(weights: list[Tensor], A: Tensor) -> Tensor:
        hidden = torch.tanh(A @ weights[0] + biases[0])
        hidden = torch.tanh(hidden @ weights[1] + biases[1])
        return hidden @ head + biases[2]

    def batch_loss(weights: list[Tensor]) -> Tensor:
        rows = torch.randint(len(X), (batch,), generator=generator)
        return F.cross_entropy(logits(weights, X[rows]), y[rows])

    def full_loss(weights: list[Tensor]) -> float:
        return float(F.cross_entropy(logits(weights, X[:4000]), y[:4000]))

    return Problem(seed, starts, batch_loss, full_loss, 0.25, lr=0.1, others=[head, *biases], seconds=2.0)


def conv(seed: int, data: Path, channels: int = 16, layers: int = 3, batch: int = 64) -> Problem:
    """A plain convolutional net without skips on scikit-learn's 8 x 8 digits, all inner kernels orthonormal."""
    del data
    digits = load_digits()
    X = torch.from_numpy((digits.data / 16).astype(np.float32)).reshape(-1, 1, 8, 8)
    X, y = (X - X.mean()) / X.std(), torch.from_numpy(digits.target)
    generator = torch.Generator().manual_seed(seed)
    starts = [haar_orthogonal(9 * channels, channels, random_state=seed * 10 + layer) for layer in range(layers)]
    first = nn.Parameter(torch.randn(channels, 1, 3, 3, generator=generator) / 3)
    head = nn.Parameter(torch.randn(channels, 10, generator=generator) / channels**0.5)

    def logits(weights: list[Tensor], A: Tensor) -> Tensor:
        hidden = torch.tanh(F.conv2d(A, first, padding=1))
        for weight in weights:
            kernel = weight.T.reshape(channels, channels, 3, 3)
            hidden = torch.tanh(F.conv2d(hidden, kernel, padding=1))
        return hidden.mean((2, 3)) @ head

    def batch_loss(weights: list[Tensor]) -> Tensor:
        rows = torch.randint(len(X), (batch,), generator=generator)
        return F.cross_entropy(logits(weights, X[rows]), y[rows])

    def full_loss(weights: list[Tensor]) -> float:
        return float(F.cross_entropy(logits(weights, X[:600]), y[:600]))

    return Problem(seed, starts, batch_loss, full_loss, 0.8, lr=0.25, others=[first, head], seconds=3.0)


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
