"""The softmax over all rights as written: one logarithm a pair, over a dense m x n table."""

import torch
from torch import Tensor


def dense_softmax(
    P: Tensor,
    Q: Tensor,
    W: Tensor,
    b: Tensor,
    temperature: float,
    bias: Tensor | float = 0.0,
    out: Tensor | None = None,
) -> Tensor:
    """- sum over the pairs of w_ij log (exp(s_ij) / sum over j' of b_j' exp(s_ij')), s_ij = p_i.q_j / t + bias_j, the
    sums without the pairs where the mask `out` is True."""
    scores = P @ Q.T / temperature + bias
    masses = (b * torch.exp(scores) * (1 if out is None else ~out)).sum(1, keepdim=True)
    return -(W * torch.log(torch.exp(scores) / masses)).sum()


def dense_sweep(
    P: Tensor, Q: Tensor, W: Tensor, b: Tensor, temperature: float, rate: float, out: Tensor
) -> tuple[Tensor, Tensor]:
    """Both sides of length 1 after a sweep without momentum, row by row; the masses are those before it."""
    masses = (~out * b * torch.exp(P @ Q.T / temperature)).sum(1)
    new_P, new_Q = P.clone(), Q.clone()
    for i in range(len(P)):
        shares = ~out[i] * b * torch.exp(P[i] @ Q.T / temperature) / masses[i]
        new_P[i] = _stepped(P[i], shares @ Q - W[i] @ Q / W[i].sum(), rate)
    for j in range(len(Q)):
        shares = ~out[:, j] * b[j] * W.sum(1) * torch.exp(new_P @ Q[j] / temperature) / masses
        new_Q[j] = _stepped(Q[j], (shares @ new_P - W[:, j] @ new_P) / W[:, j].sum(), rate)
    return new_P, new_Q


def _stepped(row: Tensor, slope: Tensor, rate: float) -> Tensor:
    slope = slope - (slope @ row) * row
    moved = row - rate * slope / max(1.0, float(slope.norm()))
    return moved / moved.norm()
