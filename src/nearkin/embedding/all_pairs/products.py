"""Products with a sparse matrix on the observed pairs: numba on the CPU, torch's sparse kernels on a GPU."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nearkin._distributed import Group
from nearkin._pairs import MatrixLike
from nearkin.embedding.all_pairs import kernels
from nearkin.records import ColumnOrder, Interactions

_Places = tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], Tensor]  # by row and by column (indptr, indices), order

SMALL = 200_000  # fewer entries than this are done before threads have started


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
        """The same places with rows and columns exchanged."""
        back = np.empty_like(self.columns.order)
        back[self.columns.order] = np.arange(len(back))
        return PairProducts(self.columns.indptr, self.columns.rows, ColumnOrder(self.indptr, self.indices, back))

    def share(self, group: Group) -> slice:
        """The rows that fall to a process, with about as many pairs as the others'."""
        weights = self.indptr + np.arange(len(self.indptr))  # a row counts as one pair, so empty rows are shared too
        cuts = np.searchsorted(weights, np.linspace(0, weights[-1], group.size + 1))
        return slice(int(cuts[group.rank]), int(cuts[group.rank + 1]))

    def part(self, rows: slice) -> "PairProducts":
        """The places in some rows, which are numbered from 0 then."""
        return _part(self.indptr, self.indices, self.shape[1], rows)

    def transposed_part(self, rows: slice) -> "PairProducts":
        """`transposed().part(rows)`."""
        return _part(self.columns.indptr, self.columns.rows, self.shape[0], rows)

    def dots(self, P: Tensor, Q: Tensor) -> Tensor:
        """(nnz,) p_i . q_j."""
        if not on_host(P):
            return torch_dots(*self._there(P)[0], P, Q)
        out = torch.empty(len(self.indices), dtype=P.dtype)
        self._by_rows(kernels.pair_dots, _array(P), _array(Q), out.numpy())
        return out

    def cross_dots(self, P: Tensor, Q: Tensor, W: Tensor, H: Tensor) -> Tensor:
        """(nnz,) w_i . q_j + p_i . h_j."""
        if not on_host(P):
            return torch_dots(*self._there(P)[0], torch.cat([W, P], 1), torch.cat([Q, H], 1))
        out = torch.empty(len(self.indices), dtype=P.dtype)
        self._by_rows(kernels.pair_cross_dots, _array(P), _array(Q), _array(W), _array(H), out.numpy())
        return out

    def times_right(self, values: Tensor, Q: Tensor) -> Tensor:
        """(m, k) X Q, where X is the sparse matrix of `values`."""
        if not on_host(Q):
            return torch_times(*self._there(Q)[0], values, Q)
        out = torch.empty((self.shape[0], Q.shape[1]), dtype=Q.dtype)
        self._by_rows(kernels.gather_rows, _array(values), _array(Q), out.numpy())
        return out

    def times_left(self, values: Tensor, P: Tensor) -> Tensor:
        """(n, k) X^T P."""
        columns = self.columns
        if not on_host(P):
            _, by_column, order = self._there(P)
            return torch_times(*by_column, values[order], P)
        out = torch.empty((self.shape[1], P.shape[1]), dtype=P.dtype)
        by_column = torch.empty(len(columns.order), dtype=values.dtype)
        by_blocks(kernels.reorder, columns.indptr, columns.order, _array(values), by_column.numpy())
        by_blocks(kernels.gather_rows, columns.indptr, columns.rows, by_column.numpy(), _array(P), out.numpy())
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
        by_column = sp.csc_matrix(sp.csr_matrix((np.arange(matrix.nnz), matrix.indices, matrix.indptr), matrix.shape))
        columns = ColumnOrder(
            by_column.indptr.astype(np.int64, copy=False),
            by_column.indices.astype(np.int32, copy=False),
            by_column.data,
        )
        return PairProducts(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), columns), matrix.data
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
    """Whether the compiled kernels can read X; elsewhere torch's sparse products do the same."""
    return X.device.type == "cpu"


def torch_dots(indptr: Tensor, indices: Tensor, P: Tensor, Q: Tensor) -> Tensor:
    """`PairProducts.dots` by torch, on any device."""
    zeros = P.new_zeros(len(indices))
    pattern = _csr(indptr, indices, zeros, (P.shape[0], Q.shape[0]))
    return torch.sparse.sampled_addmm(pattern, P, Q.T, beta=0.0).values()


def torch_times(indptr: Tensor, indices: Tensor, values: Tensor, Q: Tensor) -> Tensor:
    """`PairProducts.times_right` by torch, on any device."""
    return _csr(indptr, indices, values, (len(indptr) - 1, Q.shape[0])) @ Q


def _numbers(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, torch.int64)


def _csr(indptr: Tensor, indices: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(indptr, indices, values, size=shape, check_invariants=False)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()
