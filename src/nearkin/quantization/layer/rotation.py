"""How the rotation of an `IndexingLayer` learns: one name, and with it a parametrisation and an optimizer."""

import torch
from torch import Tensor, nn

from nearkin.linalg.procrustes import orthogonality_error
from nearkin.orthogonal.diagnostics import is_orthogonal
from nearkin.orthogonal.givens_descent import GivensDescent
from nearkin.orthogonal.matching import most_matchings
from nearkin.orthogonal.optimizer import Adam

BY_GRADIENT = {  # GCD, Algorithm 2, on the gradient that reaches R
    "givens-random": "random",
    "givens-greedy": "greedy",
    "givens-2opt": "2opt",
    "givens-steepest": "steepest",
}
ROTATIONS = (*BY_GRADIENT, "exact", "cayley", "frozen")
ANGLE = 1e-3  # a Givens step's usual angle in radians: `GivensDescent` with moments makes `lr` one, whatever the loss
MOMENTS = (0.9, 0.99)


class LayerRotation(nn.Module):
    """R (d, d), right after the warm start, and what it turns by.

    "givens-..." : R is an ordinary parameter with a gradient, for `GivensDescent`.
    "exact": R is moved by the layer itself, by one block of best angles on the running average of M = X^T phi.
    "cayley": R = R_0 (I - A)(I + A)^-1, A the skew matrix of ordinary parameters (GCD, section 1.1).
    "frozen": R stays where the warm start left it (the baseline of GCD, section 3.2).
    """

    def __init__(self, d: int, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.base = nn.Parameter(torch.eye(d), requires_grad=kind in BY_GRADIENT)
        if kind == "cayley":
            self.skew = nn.Parameter(torch.zeros(d * (d - 1) // 2))

    def forward(self) -> Tensor:
        return self.base if self.kind != "cayley" else self.base @ self._cayley()

    def set(self, R: Tensor) -> None:
        """Go on from R (d, d)."""
        with torch.no_grad():
            self.base.copy_(R)
            if self.kind == "cayley":
                self.skew.zero_()

    def _cayley(self) -> Tensor:
        d = len(self.base)
        i, j = torch.triu_indices(d, d, 1, device=self.skew.device)
        upper = self.skew.new_zeros(d, d).index_put((i, j), self.skew)
        A, eye = upper - upper.T, torch.eye(d, device=self.skew.device, dtype=self.skew.dtype)
        return torch.linalg.solve_ex(eye + A, eye - A).result  # the two commute; I + A is never singular

    def givens_parameters(self) -> list[nn.Parameter]:
        """R as a parameter for `GivensDescent`, where it is one."""
        return [self.base] if self.kind in BY_GRADIENT else []

    def optimizer(self, lr: float, n_matchings: int = 1) -> GivensDescent | None:
        """Algorithm 2 on R; None where R needs no optimizer of its own.

        `lr` is an angle in radians: the steps are divided by the running root mean square of the directional
        derivatives, so the scale of the loss does not matter. A step turns `n_matchings` matchings.
        """
        if self.kind not in BY_GRADIENT:
            return None
        count = min(n_matchings, most_matchings(len(self.base)))
        return GivensDescent(
            [self.base], lr, BY_GRADIENT[self.kind], n_matchings=count, momentum=Adam(MOMENTS), stabilize_every=1000
        )


def check_rotation(R: Tensor) -> None:
    """ValueError, which says what to type, if R (d, d) has left the rotations."""
    if bool(torch.isfinite(R).all()) and is_orthogonal(R):
        return
    raise ValueError(
        f"the layer's rotation R is no rotation any more: ||R^T R - I||_F / sqrt(d) is {orthogonality_error(R):.3g}. "
        "An optimizer for ordinary parameters has moved it; train with optimizers(layer, parameters), or where one "
        "optimizer is asked for with nearkin.orthogonal.MixedOptimizer(*optimizers(layer, parameters)), and give "
        "another optimizer layer.other_parameters() in place of layer.parameters()"
    )
