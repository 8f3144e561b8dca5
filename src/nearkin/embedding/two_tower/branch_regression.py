"""The block of the towers' features: a weighted regression of the embeddings on them."""

import torch
from torch import Tensor

from nearkin.embedding.two_tower.towers import FeatureBranch, ResidualTower, Side

BATCH = 1024  # rows of one Adam step
DAMPINGS = torch.logspace(-6, 1, 15, dtype=torch.float64)  # of the last layer, in units of the largest eigenvalue


class BranchRegression:
    """Fit g(x_i) to given embeddings p_i in the norm of the ids' penalty, sum of weight_i |p_i - g(x_i)|^2.

    With p_i = e_i + g(x_i) and the penalty on e_i alone, the all-pairs part depends on p_i only; for fixed p_i the best
    branch is this regression, and no pair is touched. One `step` is an epoch of Adam, then the exact solution of the
    last linear layer at a cost of m h^2. Rows of weight 0, those without a pair, are not learned from.
    """

    def __init__(self, side: Side, weights: Tensor, *, generator: torch.Generator, learning_rate: float = 3e-3) -> None:
        if not isinstance(side.tower, ResidualTower) or side.tower.branch is None:
            raise TypeError("side has no branch of features; give the interactions features")
        self.side, self.generator, self.rows = side, generator, int((weights > 0).sum())
        self.branch: FeatureBranch = side.tower.branch
        mean = weights.sum().clamp(min=1e-30) / max(self.rows, 1)
        self.weights = (weights / mean).reshape(-1, 1).float()
        self.optimizer = torch.optim.Adam(self.branch.parameters(), lr=learning_rate)

    def predict(self) -> Tensor:
        """(n_rows, k) g(x_i) of every row."""
        with torch.no_grad():
            return torch.cat([self.branch(self.side.feature_rows(rows)) for rows in self.side.chunks()])

    def turn(self, turn: Tensor) -> None:
        """Follow a rotation of the embeddings: g(x) becomes g(x) @ turn."""
        with torch.no_grad():
            self.branch.last.weight.copy_(turn.T @ self.branch.last.weight)
            self.branch.last.bias.copy_(self.branch.last.bias @ turn)

    def step(self, targets: Tensor) -> None:
        """One epoch towards `targets` (n_rows, k), then the exact last layer."""
        for rows in torch.randperm(self.side.n_rows, generator=self.generator).split(BATCH):
            error = self.branch(self.side.feature_rows(rows)) - targets[rows]
            self.optimizer.zero_grad()
            (self.weights[rows] * error.square()).mean().backward()
            self.optimizer.step()
        self._solve_last_layer(targets)

    @torch.no_grad()
    def _solve_last_layer(self, targets: Tensor) -> None:
        """Weighted ridge regression of the targets on (hidden, 1), in float64."""
        width = self.branch.last.in_features + 1
        A = torch.zeros((width, width), dtype=torch.float64)
        B = torch.zeros((width, targets.shape[1]), dtype=torch.float64)
        squares = 0.0
        for rows in self.side.chunks():
            hidden = self.branch.hidden(self.side.feature_rows(rows)).double()
            hidden = torch.cat([hidden, torch.ones(len(hidden), 1, dtype=torch.float64)], 1)
            weighted, Y = (hidden * self.weights[rows]).T, targets[rows].double()
            A += weighted @ hidden
            B += weighted @ Y
            squares += float((self.weights[rows] * Y.square()).sum())
        solution = solve_by_cross_validation(A, B, squares, self.rows)
        self.branch.last.weight.copy_(solution[:-1].T)
        self.branch.last.bias.copy_(solution[-1])


def solve_by_cross_validation(A: Tensor, B: Tensor, squares: float, n: int) -> Tensor:
    """(A + d I)^-1 B with the damping d of least generalized cross-validation error (Golub, Heath and Wahba 1979).

    A = X^T X (h, h), B = X^T Y (h, k), squares = |Y|^2 over n rows; the error is |Y - X S|^2 / (n - trace of the hat
    matrix)^2. One eigendecomposition serves every damping.
    """
    spectrum, turn = torch.linalg.eigh(A)
    spectrum = spectrum.clamp(min=0)
    turned = turn.T @ B
    energy = turned.square().sum(1)
    best, chosen = float("inf"), float(spectrum[-1])
    for damping in float(spectrum[-1].clamp(min=1e-12)) * DAMPINGS:
        shrunk = 1 / (spectrum + damping)
        residual = squares - float((energy * shrunk * (2 - spectrum * shrunk)).sum())
        free = n - float((spectrum * shrunk).sum())
        error = max(residual, 0.0) / free**2 if free > 0 else float("inf")
        if error < best:
            best, chosen = error, float(damping)
    return turn @ (turned / (spectrum + chosen)[:, None])
