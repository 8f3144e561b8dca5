"""The embedding of a new entity under a softmax on cosines: its row turns until it stands still, all others fixed."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import normalize

from nearkin.embedding.all_pairs.softmax import SoftmaxLoss, expected, summed
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax
from nearkin.embedding.two_tower.fold_in import History, Known, matrix_of
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.solvers.sphere import tangent_step
from nearkin.records import Interactions

STEPS, STILL = 100, 1e-4  # the most, and a move below which a row stands still


def fold_in_softmax(
    history: History, known: Known, others: np.ndarray, loss: CosineSoftmax, fitted: Interactions
) -> np.ndarray:
    """(b, k) float32, rows that `SphereSweeps` would leave where they are, all others fixed.

    A new left takes p <- normalised(p - rate * tangent(E_softmax[q] - mean_history q)) with the sum over all rights,
    which minimises its part of the loss. A new right takes the same step by its own slope, with the masses of the
    fitted lefts, to which it adds nothing; its bias is that of its number of pairs. `others` are the fitted embeddings
    of the new rows' side. Rights that `imputed` would add are left out. A row without a pair is 0, but for the bias.
    Cost: up to 100 products of b rows with the known side.
    """
    loss = replace(loss, imputed=0.0)  # which moves no sum that is needed here, and costs a regression a right
    pairs, of_fit = matrix_of(history, known), loss.from_objective(loss.objective(fitted))
    weights = AllPairs(weighting=loss.weighting).importance(pairs.data, (np.zeros(0), np.zeros(0)), fitted)
    pairs = sp.csr_matrix((weights, pairs.indices, pairs.indptr), pairs.shape)
    share = np.asarray(pairs.sum(1)).ravel()
    mean = sp.diags(np.divide(1, share, where=share > 0, out=np.zeros_like(share))) @ pairs
    Y = torch.from_numpy(known.embeddings)
    cosines = Y[:, :-1] if of_fit.bias.any() else Y
    if known.side == "right":
        pull, push = of_fit.walked_rights(cosines), _push_of_lefts(of_fit, cosines)
        last = np.ones(len(share))
    else:
        pull = of_fit.walked_lefts(cosines)
        degrees, of_others = np.diff(pairs.indptr), np.diff(fitted.columns.indptr)
        bias = loss.bias(degrees, of_others)
        scale = loss.cost(degrees, of_others) * np.exp(bias) / np.maximum(share, 1e-12)
        Q = torch.from_numpy(others[:, : cosines.shape[1]])
        push = _push_of_rights(of_fit, cosines, Q, torch.from_numpy(scale).to(Q)[:, None])
        last = of_fit.temperature * bias
    X = _still(torch.from_numpy(np.asarray(mean @ pull.numpy(), dtype=known.embeddings.dtype)), push)
    X[torch.from_numpy(share == 0)] = 0
    return np.column_stack([X.numpy(), last.astype(np.float32)]) if of_fit.bias.any() else X.numpy()


def _push_of_lefts(loss: SoftmaxLoss, Q: Tensor) -> Callable[[Tensor], Tensor]:
    """What turns rows p to the rights that a softmax expects: E_softmax[q]."""
    offsets = (loss.b[loss.rights].log() + loss.bias[loss.rights]).to(Q)
    Q = Q[loss.rights]
    return lambda P: expected(P, Q, loss.temperature, offsets)[0]


def _push_of_rights(loss: SoftmaxLoss, P: Tensor, Q: Tensor, scale: Tensor) -> Callable[[Tensor], Tensor]:
    """What turns rows q, `scale` their b_j exp(c_j) / w_j, to the lefts by which they are expected."""
    shares = (loss.left_weights[loss.lefts].log() - loss.left(P, Q).log_masses[loss.lefts]).to(P)
    P = P[loss.lefts]
    return lambda X: summed(X, P, loss.temperature, shares).mul_(scale)


def _still(pull: Tensor, push: Callable[[Tensor], Tensor]) -> Tensor:
    """The rows of length 1 whose tangent of push - pull is 0; a row that turns back halves its rate."""
    X = normalize(pull)
    rate, before = torch.ones_like(X[:, :1]), torch.zeros_like(X)
    for _ in range(STEPS):
        step = tangent_step(X, push(X).sub_(pull))
        rate = torch.where((step * before).sum(1, keepdim=True) < 0, rate / 2, rate)
        X, before = normalize(X - rate * step), step
        if len(X) == 0 or float((rate * step).norm(dim=1).max()) < STILL:
            break
    return X
