"""Better rows of one side while the other side is fixed: each row is a small least-squares problem of its own."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from nearkin._distributed import ALONE, Group
from nearkin.embedding.all_pairs import kernels
from nearkin.embedding.all_pairs.loss import AllPairsLoss, AllPairsPoint, gram
from nearkin.embedding.all_pairs.pair_losses import Squared
from nearkin.embedding.all_pairs.products import by_blocks, gathered
from nearkin.solvers.linesearch import armijo

FEW_COLUMNS = 64  # so many are solved exactly as fast as by conjugate gradients
CG_STEPS = 16
ROWS = 8192  # that are descended at a time


def solve_left(loss: AllPairsLoss, P: Tensor, Q: Tensor, group: Group = ALONE) -> Tensor:
    """(m, k) the exact minimiser of a squared loss over P for fixed Q; of another loss one Newton step from P."""
    return improve_left(loss.part(group), P, Q, block_size=P.shape[1])[1]


def descend_left(loss: AllPairsLoss, P: Tensor, Q: Tensor, group: Group = ALONE) -> Tensor:
    """(m, k) `solve_left`, to one part in a thousand of the way from P where k is large, at a cost linear in k.

    Up to 64 columns exactly; beyond, by conjugate gradients from P in the `eigenbasis`, which is turned back, a block
    of rows at a time, so that nothing but P and Q is as large as they are.
    """
    if P.shape[1] <= FEW_COLUMNS:
        return solve_left(loss, P, Q, group)
    basis = _eigenvectors(loss.omega * gram(Q, Q, loss.constants(Q).b), P, group)
    return _descended(P, Q, basis, loss.of_lefts, loss.pairs.share(group), group)


def descend_right(loss: AllPairsLoss, P: Tensor, Q: Tensor, group: Group = ALONE) -> Tensor:
    """(n, k) the same for the rows of Q."""
    if P.shape[1] <= FEW_COLUMNS:
        return solve_left(loss.transposed(), Q, P, group)
    basis = _eigenvectors(loss.omega * gram(P, P, loss.constants(P).a), P, group)
    return _descended(Q, P, basis, loss.of_rights, slice(*group.share(len(Q), 1)), group)


def _descended(
    X: Tensor, Y: Tensor, basis: tuple[Tensor, Tensor], part: Callable[[slice], AllPairsLoss], rows: slice, group: Group
) -> Tensor:
    """X after conjugate gradients on some of its rows, and what other processes made of theirs; Y is fixed."""
    (spectrum, turn), found, Y = basis, X[rows].clone(), Y @ basis[1]
    for first in range(rows.start, rows.stop, ROWS):
        block = slice(first, min(first + ROWS, rows.stop))
        better = improve_left(part(block), X[block] @ turn, Y, spectrum=spectrum, cg_steps=CG_STEPS)[1]
        found[block.start - rows.start : block.stop - rows.start] = better @ turn.T
    return gathered(found, group)


def eigenbasis(loss: AllPairsLoss, P: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    """Spectrum (k,), float64, and eigenvectors (k, k) of omega Q^T B Q: scores do not change when P and Q turn by them.

    There a row's matrix is diagonal but for its observed pairs.
    """
    return _eigenvectors(loss.omega * loss.at(P[loss.rows], Q).right_gram, P, loss.group)


def _eigenvectors(A: Tensor, like: Tensor, group: Group) -> tuple[Tensor, Tensor]:
    spectrum, turn = torch.linalg.eigh(A)
    group.broadcast(spectrum.numpy(), turn.numpy())  # machines may round differently
    return spectrum, turn.to(like)


def improve_left(
    loss: AllPairsLoss,
    P: Tensor,
    Q: Tensor,
    *,
    spectrum: Tensor | None = None,
    cg_steps: int = 2,
    block_size: int | None = None,
    mean: Tensor | None = None,
) -> tuple[AllPairsPoint, Tensor]:
    """A Newton step on every row of P (m, k): the point before it, of the rows of `loss`, and all rows after it.

    With `spectrum`, of tables that were turned into the `eigenbasis`, by `cg_steps` preconditioned steps of conjugate
    gradients at a cost of O(nnz_i k) a row; with `block_size` exactly, in blocks of that many columns, as in iALS++
    (Rendle et al. 2021). `mean` (rows, k) is what rows shrink towards in place of 0. A loss that is not quadratic gets
    an Armijo search.
    """
    before = point = loss.at(P[loss.rows], Q)
    if spectrum is None:
        solve, blocks = _exactly, torch.arange(P.shape[1]).split(block_size or P.shape[1])
    else:
        solve, blocks = _by_conjugate_gradients(spectrum.clamp(min=0).to(P), cg_steps), (slice(None),)
        if loss.omega:
            before.right_gram = torch.diag(spectrum.double()) / loss.omega  # known, so not summed again
    for columns in blocks:
        point = loss.at(_improved(loss, point, solve, columns, mean), Q)
    return before, gathered(point.P, loss.group)


def _improved(
    loss: AllPairsLoss, point: AllPairsPoint, solve: Callable, columns: Tensor | slice, mean: Tensor | None
) -> Tensor:
    """P after a Newton step on some of its columns; full for a quadratic, else as far as Armijo's rule goes."""
    gradient = point.left_gradient()
    if mean is not None:
        gradient -= point.constants.ridge_left * mean
    P = point.P.clone()
    if isinstance(loss.loss, Squared):
        P[:, columns] += solve(point, gradient, columns)
        return P
    direction = torch.zeros_like(P)
    direction[:, columns] = solve(point, gradient, columns)

    towards = 0.0 if mean is None else float((point.constants.ridge_left * mean * direction).sum())
    sums = np.array([towards, float((gradient * direction).sum(dtype=torch.float64))])
    loss.group.all_reduce(sums)

    def along(t: float) -> float:
        return loss.value(point.P + t * direction, point.Q) - t * float(sums[0])

    slope = min(float(sums[1]), 0.0)
    return P.add_(direction, alpha=armijo(along, point.value(), slope).step_size)


def _by_conjugate_gradients(spectrum: Tensor, steps: int) -> Callable:
    def solve(point: AllPairsPoint, gradient: Tensor, columns: slice) -> Tensor:
        del columns  # all of them
        return _by_rows(kernels.solve_rows_cg, point, point.Q, spectrum, gradient, steps)

    return solve


def _exactly(point: AllPairsPoint, gradient: Tensor, columns: Tensor) -> Tensor:
    Q = point.Q[:, columns].contiguous()
    gram = (point.omega * point.right_gram[columns][:, columns]).to(Q)
    return _by_rows(kernels.solve_rows_exactly, point, Q, gram, gradient[:, columns].contiguous())


def _by_rows(kernel: Callable, point: AllPairsPoint, Q: Tensor, gram: Tensor, gradient: Tensor, *extra: int) -> Tensor:
    """Directions of all rows by one of `kernels`."""
    c, out = point.constants, torch.empty_like(gradient)
    arrays = (point.curvature, Q, gram, c.a.reshape(-1), c.ridge_left.reshape(-1), gradient, out)
    by_blocks(
        kernel, point.pairs.indptr, point.pairs.indices, *(array.contiguous().numpy() for array in arrays), *extra
    )
    return out
