"""One process's rows among the rows of all processes, for fits on distributed data."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import ThreadpoolController

from nearkin._check import draw_seed, numpy_generator, validate_vectors
from nearkin._distributed import ALONE, Group, current
from nearkin._types import ArrayLike, Seed


@dataclass(frozen=True)
class Shard:
    """This process holds the rows `first`, ... , `first + own - 1` of `total`; alone it holds all."""

    group: Group
    first: int
    own: int
    total: int

    @classmethod
    def of(cls, X: np.ndarray, group: Group = ALONE) -> "Shard":
        """The position of the rows X (own, d) in the order of ranks; ValueError if ranks differ in width or type."""
        about = group.exchange([len(X), X.shape[1], X.dtype.name])
        for rank, (_, width, dtype) in enumerate(about):
            if [width, dtype] != about[0][1:]:
                raise ValueError(
                    f"rank {rank} has rows of {width} columns, {dtype}; rank 0 has {about[0][1]} columns, "
                    f"{about[0][2]}; all ranks need the same"
                )
        lengths = [length for length, *_ in about]
        return cls(group, sum(lengths[: group.rank]), lengths[group.rank], sum(lengths))

    def here(self, numbers: np.ndarray) -> np.ndarray:
        """The rows of X that increasing `numbers`, counted over all processes, name here."""
        low, high = np.searchsorted(numbers, [self.first, self.first + self.own])
        return numbers[low:high] - self.first

    def rows(self, X: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The rows of X (own, d) or (own,) of those numbers, in their order, on every process."""
        found = np.zeros((len(numbers), *X.shape[1:]), X.dtype)
        mine = (numbers >= self.first) & (numbers < self.first + self.own)
        found[mine] = X[numbers[mine] - self.first]
        self.group.all_reduce(found)  # every row comes from one process, the others add zeros
        return found

    def whole(self, X: np.ndarray) -> np.ndarray:
        """The rows of all processes, (total, d) or (total,), on every process."""
        return X if self.group.size == 1 else np.concatenate(self.group.gather(X))

    def check_varies(self, X: np.ndarray) -> None:
        """ValueError if all rows of all processes are equal."""
        ends = [[X.min(axis=0).tolist(), X.max(axis=0).tolist()]] if len(X) else []
        found = np.array([end for part in self.group.exchange(ends) for end in part])  # (parts, 2, d)
        if (found[:, 0].min(axis=0) == found[:, 1].max(axis=0)).all():
            raise ValueError(f"X is constant: all of its {self.total} rows are equal; give data that vary")


def training_rows(
    estimator: BaseEstimator, X: ArrayLike, *, min_rows: int = 1, reset: bool = True
) -> tuple[np.ndarray, Shard]:
    """`validate_vectors` of this process's rows, and their place; ValueError if all have fewer than `min_rows`."""
    group = current()
    X = validate_vectors(estimator, X, reset=reset, min_rows=min_rows if group.size == 1 else 0)
    shard = Shard.of(X, group)
    if shard.total < min_rows:
        raise ValueError(f"all ranks together have n_samples={shard.total} rows; a minimum of {min_rows} is required")
    return X, shard


def whole_rows(estimator: BaseEstimator, X: ArrayLike, *, min_rows: int = 1) -> np.ndarray:
    """The rows of all processes on every process, for fits that are not sums: each process then does all the work."""
    X, shard = training_rows(estimator, X, min_rows=min_rows)
    return shard.whole(X)


def shared_generator(random_state: Seed, group: Group | None = None) -> np.random.Generator:
    """`numpy_generator` that draws the same on every process, even where the seed is None."""
    group = current() if group is None else group
    if random_state is not None or group.size == 1:
        return numpy_generator(random_state)
    return np.random.default_rng(group.exchange(draw_seed(np.random.default_rng()))[0])


_LONG = 20_000_000_000  # multiply-adds of one product, a second of one core, from which threads pay on any machine


def serial_products(multiply_adds: float, long: float = _LONG) -> AbstractContextManager[object]:
    """While the block runs, BLAS has one thread if its largest product is smaller than `long`. Waiting BLAS threads
    spin: next to another program a fit of short products took 12 times as long on two threads as on one. FAISS keeps
    its threads."""
    if multiply_adds >= long:
        return nullcontext()
    return ThreadpoolController().limit(limits=1, user_api="blas")
