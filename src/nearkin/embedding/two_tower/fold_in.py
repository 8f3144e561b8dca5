"""The embedding of a new entity from its history: the model's own loss solved for its row, the other side fixed."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from nearkin._pairs import number_ids
from nearkin._types import ArrayLike
from nearkin.embedding.all_pairs.loss import SQUARED, AllPairsLoss
from nearkin.embedding.all_pairs.row_solves import improve_left
from nearkin.embedding.two_tower.objective import AllPairs
from nearkin.embedding.two_tower.towers import as_tensor
from nearkin.records import Interactions

History: TypeAlias = Interactions | sp.spmatrix | sp.sparray | np.ndarray | Sequence
"""What new entities met: pairs, a matrix of weights, or ids, of one or of each."""

NEWTON_STEPS = 20  # for a loss that is not quadratic; most need five


class FittedLoss(NamedTuple):
    """The loss that the model was fitted with."""

    loss: AllPairs
    omega: float
    strength: float  # lambda
    fitted: Interactions  # whose weights have the mean importance 1


class Known(NamedTuple):
    """The fixed side of a fold-in: its ids, embeddings, name, and what its rows cost as unobserved."""

    ids: np.ndarray
    embeddings: np.ndarray
    side: str  # "left" or "right"
    costs: np.ndarray


def fold_in(
    history: History, known: Known, model: FittedLoss, encoder: nn.Module | None, features: ArrayLike | None
) -> np.ndarray:
    """(b, k) float32, the minimisers of the loss over the new rows p_i for the fixed embeddings q_j,

        sum over the history w_ij l(Y_ij, p_i . q_j) + (omega / 2) sum over the others b_j (p_i . q_j)^2
        + (lambda / 2) r_i |p_i - g(x_i)|^2,

    r_i the weight that the row meets and g(x_i) the branch of its features, 0 without them: one solve of a k x k system
    a row (ESL, eq. 5 with a new row). A prior of several factors has no row for a new entity, which then gets 0.
    """
    loss, omega = model.loss, model.omega
    pairs = matrix_of(history, known)
    n, count = len(known.ids), len(pairs.indptr) - 1
    own, fitted = np.diff(pairs.indptr), model.fitted.columns if known.side == "right" else model.fitted
    degrees = np.repeat(own, own), np.diff(fitted.indptr)[pairs.indices]
    weights = loss.importance(pairs.data, degrees, model.fitted)
    row_weight = np.add.reduceat(np.append(weights, 0.0), pairs.indptr[:-1]) * (np.diff(pairs.indptr) > 0)
    ridge = row_weight + omega * known.costs.sum()
    of_rows = AllPairsLoss(
        pairs, loss=loss.pair_loss, omega=omega, labels=pairs.data if loss.labels == "weights" else 1.0,
        weights=weights, b=known.costs, prior=loss.prior if isinstance(loss.prior, int | float) else None,
        regularization=model.strength, ridge=(ridge, np.ones(n)),
    )  # fmt: skip
    mean = None if encoder is None or features is None else _encoded(encoder, features, count)
    Q = torch.from_numpy(known.embeddings)
    P = torch.zeros(count, Q.shape[1], dtype=Q.dtype)
    for _ in range(1 if of_rows.loss == SQUARED else NEWTON_STEPS):
        P = improve_left(of_rows, P, Q, mean=mean)[1]
    return P.numpy()


def matrix_of(history: History, known: Known) -> sp.csr_matrix:
    """One row an entity, one column an entity of the known side, the weights as values; ValueError without a pair."""
    n, side = len(known.ids), known.side
    if isinstance(history, Interactions):
        matrix = history.matrix() if side == "right" else history.matrix().T
        ids = history.right_ids if side == "right" else history.left_ids
        columns, _ = number_ids(ids, known.ids, side)
        coo = sp.coo_matrix(matrix)
        count = history.shape[0] if side == "right" else history.shape[1]
        matrix = sp.csr_matrix((coo.data, (coo.row, columns[coo.col])), shape=(count, n))
    elif isinstance(history, sp.spmatrix | sp.sparray):
        matrix = sp.csr_matrix(history)
        if matrix.get_shape()[1] != n:
            raise ValueError(f"history has shape {matrix.shape}; it must be (b, {n}), a column for each {side} id")
        matrix.sum_duplicates()
    else:
        rows: list[np.ndarray | Sequence] = list(history) if _is_nested(history) else [history]
        parts = [number_ids(row, known.ids, side)[0] for row in rows if len(row)]
        columns = np.concatenate(parts) if parts else np.empty(0, np.int32)
        numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        matrix = sp.csr_matrix((np.ones(len(columns)), (numbers, columns)), (len(rows), n))
        matrix.data[:] = 1.0  # an id that stands twice is one pair
    if not matrix.nnz:
        raise ValueError(f"history is empty; give at least one {side} id that the model was fitted on")
    return matrix


def _is_nested(history: Sequence | np.ndarray) -> bool:
    """Whether it holds one sequence of ids an entity, rather than the ids of one."""
    if isinstance(history, np.ndarray):
        return history.ndim == 2
    return (
        len(history) > 0 and isinstance(history[0], Sequence | np.ndarray) and not isinstance(history[0], str | bytes)
    )


def _encoded(encoder: nn.Module, features: ArrayLike, rows: int) -> Tensor:
    """g(x_i) (b, k) of the new rows."""
    given = sp.csr_matrix(features, dtype=np.float32) if sp.issparse(features) else np.asarray(features, np.float32)
    shape: tuple[int, ...] = given.shape  # pyright: ignore[reportAssignmentType]
    if len(shape) != 2 or shape[0] != rows:
        raise ValueError(f"features has shape {given.shape}; it must be ({rows}, d), one row for each history")
    with torch.no_grad():
        return encoder(as_tensor(given))
