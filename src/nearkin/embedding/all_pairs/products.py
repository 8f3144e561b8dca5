"""Products with a sparse matrix on the observed pairs: numba on the CPU, torch's sparse kernels on a GPU.

The compiled loops process the pairs in CSR order and read each q_j in place: no array of size (nnz, k) exists. All take
the rows [start, stop), release the interpreter's lock and write only these rows, so threads share nothing.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nearkin._compile import cached_njit
from nearkin._distributed import Group
from nearkin._pairs import MatrixLike
from nearkin.records import ColumnOrder, Interactions

SMALL = 200_000  # pairs; fewer are done before threads have started

compiled: Callable[[Callable[..., None]], Callable[..., None]] = cached_njit(
    nogil=True, fastmath=True, error_model="numpy"
)


class PairProducts:
    """The places of the observed pairs, in row and in column order, and what is multiplied there.

    `values` are (nnz,) tensors in row order; P, W are (m, k) and Q, H (n, k) tensors of one dtype and device.
    """

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, columns: ColumnOrder) -> None:
        self.indptr: np.ndarray = indptr
        self.indices: np.ndarray = indices
        self.columns: ColumnOrder = columns
        self.order: Tensor = torch.from_numpy(columns.order)
        self.shape: tuple[int, int] = (len(indptr) - 1, len(columns.indptr) - 1)
        self._there: dict[torch.device, list[Tensor]] = {}

    def transposed(self) -> "PairProducts":
        back = np.empty_like(self.columns.order)
        back[self.columns.order] = np.arange(len(back))
        return PairProducts(self.columns.indptr, self.columns.rows, ColumnOrder(self.indptr, self.indices, back))

    def share(self, group: Group) -> slice:
        """The rows of one process, with about as many pairs as the others'."""
        weights = self.indptr + np.arange(len(self.indptr))  # a row counts as one pair, so empty rows are shared too
        cuts = np.searchsorted(weights, np.linspace(0, weights[-1], group.size + 1))
        return slice(int(cuts[group.rank]), int(cuts[group.rank + 1]))

    def part(self, rows: slice) -> "PairProducts":
        """The places in some rows, which are numbered from 0 then."""
        return _part(self.indptr, self.indices, self.shape[1], rows)

    def dots(self, P: Tensor, Q: Tensor) -> Tensor:
        """(nnz,) p_i . q_j."""
        if not on_host(P):
            indptr, indices = self._places(P.device)[:2]
            return torch_dots(indptr, indices, P, Q)
        out = torch.empty(len(self.indices), dtype=P.dtype)
        by_blocks(pair_dots, self.indptr, self.indices, _array(P), _array(Q), out.numpy())
        return out

    def times_right(self, values: Tensor, Q: Tensor) -> Tensor:
        """(m, k) X Q, where X is the sparse matrix of `values`."""
        if not on_host(Q):
            indptr, indices = self._places(Q.device)[:2]
            return torch_times(indptr, indices, values, Q)
        return _times(self.indptr, self.indices, values, Q)

    def times_left(self, values: Tensor, P: Tensor) -> Tensor:
        """(n, k) X^T P."""
        if not on_host(P):
            indptr, rows, order = self._places(P.device)[2:]
            return torch_times(indptr, rows, values[order], P)
        return _times(self.columns.indptr, self.columns.rows, values[self.order], P)

    def _places(self, device: torch.device) -> list[Tensor]:
        """indptr and indices by row, indptr, rows and order by column, on a GPU, where they are copied once."""
        if device not in self._there:
            arrays = self.indptr, self.indices, *self.columns
            self._there[device] = [torch.from_numpy(array).to(device, torch.int64) for array in arrays]
        return self._there[device]


def observed_pairs(observed: Interactions | MatrixLike) -> tuple[PairProducts, np.ndarray]:
    """The places of the observed pairs of a record or a sparse matrix, and the stored values (nnz,)."""
    if sp.issparse(observed):
        matrix = sp.csr_matrix(observed)
        matrix.sum_duplicates()
        if not matrix.nnz:
            raise ValueError("observed has no stored entry; it must hold at least one observed pair")
        places = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return _part(*places, matrix.shape[1], slice(0, matrix.shape[0])), matrix.data  # pyright: ignore[reportOptionalSubscript]
    if not isinstance(observed, Interactions):
        raise TypeError(
            f"observed is of type {type(observed).__name__}; it must be Interactions or a scipy sparse matrix, "
            "pass scipy.sparse.csr_matrix(observed)"
        )
    return PairProducts(observed.indptr, observed.indices, observed.columns), observed.weights


def _part(indptr: np.ndarray, indices: np.ndarray, n: int, rows: slice) -> PairProducts:
    indptr = indptr[rows.start : rows.stop + 1]
    indices, indptr = indices[indptr[0] : indptr[-1]], indptr - indptr[0]
    numbers = np.arange(len(indices), dtype=np.int64)
    by_column = sp.csc_matrix(sp.csr_matrix((numbers, indices, indptr), (len(indptr) - 1, n)))
    order = ColumnOrder(by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32), by_column.data)
    return PairProducts(indptr, indices, order)


def gathered(X: Tensor, group: Group) -> Tensor:
    """The rows of all processes, in the order of the ranks."""
    return X if group.size == 1 else torch.from_numpy(np.concatenate(group.gather(X.contiguous().cpu().numpy()))).to(X)


def by_blocks(kernel: Callable, indptr: np.ndarray, *arguments: object) -> None:
    """Run kernel(start, stop, indptr, *arguments) on blocks of rows with equal shares of the pairs, a thread each."""
    rows, threads = len(indptr) - 1, torch.get_num_threads()
    if threads == 1 or indptr[-1] < SMALL:
        kernel(0, rows, indptr, *arguments)
        return
    # Four blocks a thread, since blocks take unequal times. A row counts as one pair, so empty rows are shared too.
    shares = np.linspace(0, indptr[-1] + rows, 4 * threads + 1)
    cuts = np.searchsorted(indptr + np.arange(rows + 1), shares)
    cuts[0], cuts[-1] = 0, rows
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(kernel, a, b, indptr, *arguments) for a, b in pairwise(cuts)]:
            done.result()


def on_host(X: Tensor) -> bool:
    """Whether the compiled loops can read X; other devices use torch's sparse products."""
    return X.device.type == "cpu"


def torch_dots(indptr: Tensor, indices: Tensor, P: Tensor, Q: Tensor) -> Tensor:
    zeros = P.new_zeros(len(indices))
    pattern = _csr(indptr, indices, zeros, (P.shape[0], Q.shape[0]))
    return torch.sparse.sampled_addmm(pattern, P, Q.T, beta=0.0).values()


def torch_times(indptr: Tensor, indices: Tensor, values: Tensor, Q: Tensor) -> Tensor:
    return product(_csr(indptr, indices, values, (len(indptr) - 1, Q.shape[0])), Q)


def product(A: Tensor, B: Tensor) -> Tensor:
    """A B in the type of both, also under autocast, which casts no call with `out`."""
    return torch.mm(A, B, out=B.new_empty(A.shape[0], B.shape[1]))


def _csr(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support is in beta|invariant checks)")
        return torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


def _times(indptr: np.ndarray, indices: np.ndarray, values: Tensor, X: Tensor) -> Tensor:
    out = torch.empty((len(indptr) - 1, X.shape[1]), dtype=X.dtype)
    by_blocks(gather_rows, indptr, indices, _array(values), _array(X), out.numpy())
    return out


# ---- compiled loops --------------------------------------------------------------------------------------------------


@compiled
def pair_dots(start, stop, indptr, indices, P, Q, out):
    """out[e] = p_i . q_j for the pairs e = (i, j) of the rows: the sampled dense-dense product."""
    for i in range(start, stop):
        p = P[i]
        for e in range(indptr[i], indptr[i + 1]):
            q, total = Q[indices[e]], P.dtype.type(0)
            for c in range(len(p)):
                total += p[c] * q[c]
            out[e] = total


@compiled
def gather_rows(start, stop, indptr, indices, values, X, out):
    """out[i] = sum over the pairs e = (i, j) of values[e] x_j: the sparse-dense product."""
    for i in range(start, stop):
        gather_row(indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]], X, out[i])


@compiled
def gather_row(indices, values, X, row):
    """row = sum over e of values[e] X[indices[e]]."""
    e, end, number = 0, len(indices), X.dtype.type
    row[:] = 0
    while e + 4 <= end:  # four pairs at a time: the row is read and written once for all of them
        x0, x1, x2, x3 = X[indices[e]], X[indices[e + 1]], X[indices[e + 2]], X[indices[e + 3]]
        v0, v1, v2, v3 = number(values[e]), number(values[e + 1]), number(values[e + 2]), number(values[e + 3])
        for c in range(len(row)):
            row[c] += v0 * x0[c] + v1 * x1[c] + v2 * x2[c] + v3 * x3[c]
        e += 4
    while e < end:
        x, v = X[indices[e]], number(values[e])
        for c in range(len(row)):
            row[c] += v * x[c]
        e += 1


@cached_njit(nogil=True, fastmath={"reassoc", "nsz", "arcp", "contract"}, error_model="numpy")  # infinities occur
def softmax_rows(
    start, stop, indptr, indices, inverse, X, Y, weights, counts, offsets, shares, sums, top, log_masses, losses, slope
):
    """Slopes of rows x: scale (sums of the others + sum of v_j y_j) - sum of w_j y_j, over the pairs of x in the second
    and third sum, with v_j = exp(x.y_j / t + offset_j + log count_j), 0 for all without `counts`.

    scale is the row's share; with `losses`, which are written with `log_masses`, its share of the mass. The others'
    `sums` (n, k + 1), whose last column is their mass, are divided by exp(top). A row y_j is read from memory once.
    """
    number, step, longest = X.dtype.type, X.dtype.type(inverse), 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    v = np.zeros(longest, X.dtype)
    for i in range(start, stop):
        x, row, first, n = X[i], slope[i], indptr[i], indptr[i + 1] - indptr[i]
        scale, highest, expected, mass = shares[i], top[i], number(0), number(0)
        counted = n if len(counts) and scale > 0 else 0
        for e in range(counted):
            if counts[first + e] > -np.inf:
                y, dot = Y[indices[first + e]], number(0)
                for c in range(len(x)):
                    dot += x[c] * y[c]
                v[e] = dot
                if len(losses):
                    highest = max(highest, number(step * dot + offsets[indices[first + e]] + counts[first + e]))
        for e in range(counted):
            dot, v[e] = v[e], 0
            if counts[first + e] > -np.inf:
                v[e] = np.exp(number(step * dot + offsets[indices[first + e]] + counts[first + e] - highest))
                mass += v[e]
                expected += v[e] * dot
        lift = np.exp(top[i] - highest)
        mass += lift * sums[i, len(x)]
        if len(losses):
            scale = scale / mass if mass > 0 else number(0)
        v[counted:n] = 0
        for e in range(n):
            v[e] = scale * v[e] - weights[first + e]
        gather_row(indices[first : first + n], v, Y, row)
        if len(losses):
            dot = number(0)
            for c in range(len(x)):
                dot += x[c] * row[c]
            log_masses[i] = np.log(mass) + highest if mass > 0 else np.inf
            losses[i] = (shares[i] * log_masses[i] if mass > 0 else 0) - step * (scale * expected - dot)
        if scale > 0:
            for c in range(len(x)):
                row[c] += scale * lift * sums[i, c]
