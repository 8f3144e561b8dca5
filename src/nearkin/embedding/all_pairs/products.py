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
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from torch import Tensor

from nearkin._compile import cached_njit
from nearkin._distributed import Group
from nearkin._pairs import MatrixLike
from nearkin.records import ColumnOrder, Interactions

_Places = tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], Tensor]  # by row and by column (indptr, indices), order

SMALL = 200_000  # pairs; fewer are done before threads have started
AHEAD = 12  # pairs between the prefetch of a row and its use; 8 to 16 took the same time
FAR_AHEAD = 64  # single numbers, which are used faster than rows
_LINE = 64  # bytes of a cache line
_CACHE = 1 << 19  # bytes of a core's private cache: smaller matrices are not prefetched

compiled = cached_njit(nogil=True, fastmath=True, error_model="numpy")


class PairProducts:
    """The places of the observed pairs, in row and in column order, and what is multiplied there.

    `values` are (nnz,) tensors in row order; P, W are (m, k) and Q, H (n, k) tensors of one dtype and device.
    """

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, columns: ColumnOrder) -> None:
        self.indptr, self.indices, self.columns = indptr, indices, columns
        self.order = torch.from_numpy(columns.order)
        self.shape = (len(indptr) - 1, len(columns.indptr) - 1)
        self._places: dict[torch.device, _Places] = {}

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
            return torch_dots(*self._there(P)[0], P, Q)
        out = torch.empty(len(self.indices), dtype=P.dtype)
        self._by_rows(pair_dots, _array(P), _array(Q), out.numpy())
        return out

    def cross_dots(self, P: Tensor, Q: Tensor, W: Tensor, H: Tensor) -> Tensor:
        """(nnz,) w_i . q_j + p_i . h_j."""
        if not on_host(P):
            return torch_dots(*self._there(P)[0], torch.cat([W, P], 1), torch.cat([Q, H], 1))
        out = torch.empty(len(self.indices), dtype=P.dtype)
        self._by_rows(pair_cross_dots, _array(P), _array(Q), _array(W), _array(H), out.numpy())
        return out

    def times_right(self, values: Tensor, Q: Tensor) -> Tensor:
        """(m, k) X Q, where X is the sparse matrix of `values`."""
        if not on_host(Q):
            return torch_times(*self._there(Q)[0], values, Q)
        out = torch.empty((self.shape[0], Q.shape[1]), dtype=Q.dtype)
        self._by_rows(gather_rows, _array(values), _array(Q), out.numpy())
        return out

    def times_left(self, values: Tensor, P: Tensor) -> Tensor:
        """(n, k) X^T P."""
        columns = self.columns
        if not on_host(P):
            _, by_column, order = self._there(P)
            return torch_times(*by_column, values[order], P)
        out = torch.empty((self.shape[1], P.shape[1]), dtype=P.dtype)
        by_column = torch.empty(len(columns.order), dtype=values.dtype)
        by_blocks(reorder, columns.indptr, columns.order, _array(values), by_column.numpy())
        by_blocks(gather_rows, columns.indptr, columns.rows, by_column.numpy(), _array(P), out.numpy())
        return out

    def _there(self, like: Tensor) -> "_Places":
        """The places on the device of `like`, copied there once."""
        device, columns = like.device, self.columns
        if device not in self._places:
            by_row = _numbers(self.indptr, device), _numbers(self.indices, device)
            by_column = _numbers(columns.indptr, device), _numbers(columns.rows, device)
            self._places[device] = by_row, by_column, self.order.to(device)
        return self._places[device]

    def _by_rows(self, kernel: Callable, *arguments: object) -> None:
        by_blocks(kernel, self.indptr, self.indices, *arguments)


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
    shares = np.linspace(
        0, indptr[-1] + rows, 4 * threads + 1
    )  # a row counts as one pair, so empty rows are shared too
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
    return _csr(indptr, indices, values, (len(indptr) - 1, Q.shape[0])) @ Q


def _numbers(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, torch.int64)


def _csr(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


# ---- compiled loops --------------------------------------------------------------------------------------------------


@njit(inline="always")
def is_far(X):
    """Whether X is larger than a core's private cache."""
    return X.size * X.itemsize > _CACHE


@njit(inline="always")
def prefetch_row(X, i):
    """Load the row X[i] of X (n, k), 0 <= i < n, into the cache; without it every pair waits for memory where Q is
    larger than the cache (a pair took twice as long, `python -m benchmarks two_tower --scaling`)."""
    for c in range(0, X.shape[1], _LINE // X.itemsize):
        prefetch(X, (np.intp(i), np.intp(c)))  # pyright: ignore[reportCallIssue]


@intrinsic
def prefetch(typing_context, array, place):
    """LLVM's prefetch of the cache line of array[place], a tuple of intp: for reading, into all cache levels."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        position = cgutils.unpack_tuple(builder, arguments[1])
        entry = cgutils.get_item_pointer(
            context, builder, kind, make_array(kind)(context, builder, arguments[0]), position
        )
        pointer, number = cgutils.voidptr_t, ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        )
        builder.call(hint, [builder.bitcast(entry, pointer), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(array, place), generate


@compiled
def pair_dots(start, stop, indptr, indices, P, Q, out):
    """out[e] = p_i . q_j for the pairs e = (i, j) of the rows: the sampled dense-dense product."""
    k, last, far = P.shape[1], indptr[stop] - 1, is_far(Q)
    for i in range(start, stop):
        p = P[i]
        for e in range(indptr[i], indptr[i + 1]):
            if far:
                prefetch_row(Q, indices[min(e + AHEAD, last)])
            q = Q[indices[e]]
            total = P.dtype.type(0)
            for c in range(k):
                total += p[c] * q[c]
            out[e] = total


@compiled
def pair_cross_dots(start, stop, indptr, indices, P, Q, W, H, out):
    """out[e] = w_i . q_j + p_i . h_j, the directional derivative of the scores."""
    k, last, far = P.shape[1], indptr[stop] - 1, is_far(Q)
    for i in range(start, stop):
        p, w = P[i], W[i]
        for e in range(indptr[i], indptr[i + 1]):
            if far:
                ahead = indices[min(e + AHEAD, last)]
                prefetch_row(Q, ahead)
                prefetch_row(H, ahead)
            q, h = Q[indices[e]], H[indices[e]]
            total = P.dtype.type(0)
            for c in range(k):
                total += w[c] * q[c] + p[c] * h[c]
            out[e] = total


@compiled
def reorder(start, stop, indptr, order, values, out):
    """out[e] = values[order[e]] for the pairs of the rows; within `gather_rows` these reads took twice as long."""
    last = indptr[stop] - 1
    for e in range(indptr[start], indptr[stop]):
        prefetch(values, (order[min(e + FAR_AHEAD, last)],))  # pyright: ignore[reportCallIssue]
        out[e] = values[order[e]]


@compiled
def gather_rows(start, stop, indptr, indices, values, Q, out):
    """out[i] = sum over the pairs e = (i, j) of values[e] q_j: the sparse-dense product, four pairs at a time."""
    k, last, far = Q.shape[1], indptr[stop] - 1, is_far(Q)
    for i in range(start, stop):
        row = out[i]
        for c in range(k):
            row[c] = 0
        e, end = indptr[i], indptr[i + 1]
        while e + 4 <= end:
            if far:
                for ahead in range(e + AHEAD, e + AHEAD + 4):
                    prefetch_row(Q, indices[min(ahead, last)])
            q0, q1, q2, q3 = Q[indices[e]], Q[indices[e + 1]], Q[indices[e + 2]], Q[indices[e + 3]]
            v0, v1, v2, v3 = values[e], values[e + 1], values[e + 2], values[e + 3]
            for c in range(k):
                row[c] += v0 * q0[c] + v1 * q1[c] + v2 * q2[c] + v3 * q3[c]
            e += 4
        while e < end:
            q, v = Q[indices[e]], values[e]
            for c in range(k):
                row[c] += v * q[c]
            e += 1
