"""Products on the observed pairs: numba, torch's sparse kernels, threads and the dense matrix give one answer."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from nearkin._distributed import Group
from nearkin.embedding.all_pairs import products as pair_products
from nearkin.embedding.all_pairs.products import PairProducts, torch_dots, torch_times
from nearkin.records import Interactions
from tests.covering import each


@pytest.fixture(params=[(30, 20, 7), (1500, 1200, 64)])
def problem(rng: np.random.Generator, request: pytest.FixtureRequest) -> tuple:
    m, n, k = request.param
    pairs = Interactions.from_matrix(sp.random(m, n, density=9 / m, random_state=0, format="csr"))
    P, Q = torch.tensor(rng.standard_normal((m, k))), torch.tensor(rng.standard_normal((n, k)))
    return pairs, P, Q, torch.tensor(rng.standard_normal(len(pairs)))


@each("threads", [1, 2])
def test_products_are_those_of_the_dense_matrix(problem: tuple, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    pairs, P, Q, values = problem
    monkeypatch.setattr(pair_products, "SMALL", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    products = PairProducts(pairs.indptr, pairs.indices, pairs.columns)
    X = sp.csr_matrix((values.numpy(), pairs.indices, pairs.indptr), shape=pairs.shape).toarray()
    rows, columns = torch.from_numpy(pairs.rows).long(), torch.from_numpy(pairs.indices).long()
    torch.testing.assert_close(products.dots(P, Q), (P @ Q.T)[rows, columns])
    torch.testing.assert_close(products.times_right(values, Q), torch.from_numpy(X) @ Q)
    torch.testing.assert_close(products.times_left(values, P), torch.from_numpy(X).T @ P)
    torch.testing.assert_close(products.transposed().times_left(values[products.order], Q), torch.from_numpy(X) @ Q)


def test_the_kernels_of_a_gpu_agree_on_the_cpu(problem: tuple) -> None:
    pairs, P, Q, values = problem
    products = PairProducts(pairs.indptr, pairs.indices, pairs.columns)
    places = [torch.from_numpy(array).long() for array in (pairs.indptr, pairs.indices)]
    torch.testing.assert_close(torch_dots(*places, P, Q), products.dots(P, Q))
    torch.testing.assert_close(torch_times(*places, values, Q), products.times_right(values, Q))


def test_a_process_multiplies_its_rows_of_the_matrix(rng: np.random.Generator) -> None:
    X = sp.random(30, 20, density=0.3, random_state=0, format="csr")
    pairs = Interactions.from_matrix(X)
    whole = PairProducts(pairs.indptr, pairs.indices, pairs.columns)
    P, Q = torch.tensor(rng.standard_normal((30, 4))), torch.tensor(rng.standard_normal((20, 4)))
    values = torch.tensor(X.data)
    found = torch.zeros(20, 4, dtype=torch.float64)
    for rank in range(3):
        rows = whole.share(Ranked(rank, 3))
        part, mine = whole.part(rows), values[pairs.indptr[rows.start] : pairs.indptr[rows.stop]]
        dense = torch.tensor(X[rows].toarray())
        torch.testing.assert_close(part.dots(P[rows], Q), (P[rows] @ Q.T)[dense != 0])
        torch.testing.assert_close(part.times_right(mine, Q), dense @ Q)
        found += part.times_left(mine, P[rows])
    torch.testing.assert_close(found, torch.tensor(X.toarray()).T @ P)


class Ranked(Group):
    """A process of several, of which only rank and size count."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
