"""Records of sums: what merges must be the whole, whatever the cuts, down to no row and to one."""

from collections.abc import Callable

import numpy as np
import pytest

from nearkin.statistics import AbstractSums, CellSums, RowMean, row_mean, squared_norm
from tests.covering import each


def means(X: np.ndarray, cells: np.ndarray) -> list[np.ndarray]:
    return [X[cells == k].mean(axis=0) if (cells == k).any() else np.zeros(3) for k in range(4)]


RECORDS: dict[str, tuple[Callable[[], AbstractSums], Callable]] = {
    "mean": (lambda: RowMean(3), lambda X, B, codes: X.mean(axis=0)),
    "cross": (lambda: RowMean(3, 2), lambda X, B, codes: X.T @ B / len(X)),
    "norm": (RowMean, lambda X, B, codes: (X**2).sum() / len(X)),
    "cells": (lambda: CellSums(2, 4, 3), lambda X, B, codes: np.array([means(X, codes[:, m]) for m in (0, 1)])),
}  # fmt: skip


def update(record: AbstractSums, X: np.ndarray, B: np.ndarray, codes: np.ndarray) -> AbstractSums:
    if isinstance(record, CellSums):
        return record.update(X, codes)
    assert isinstance(record, RowMean)
    if record.total.ndim == 2:
        return record.update(X.T @ B, len(X))
    return record.merge(row_mean(X) if record.total.ndim else squared_norm(X))


@pytest.fixture
def rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes = rng.integers(0, 3, (50, 2)).astype(np.int32)  # cell 3 stays empty
    return rng.normal(size=(50, 3)), rng.normal(size=(50, 2)), codes


@each("name", RECORDS)
def test_parts_merge_to_the_whole(name: str, rows: tuple) -> None:
    make, truth = RECORDS[name]
    for cuts in ((), (20,), (0, 1, 49), (7, 7, 30)):
        merged, in_chunks = make(), make()
        for part in zip(*(np.split(a, cuts) for a in rows), strict=True):
            merged.merge(update(make(), *part))
            update(in_chunks, *part)
        for found in (merged, in_chunks):
            np.testing.assert_allclose(found.finalize(), truth(*rows), rtol=1e-12, atol=1e-12, err_msg=f"{cuts}")


@each("name", RECORDS)
def test_no_row_gives_zeros_and_one_row_itself(name: str, rows: tuple) -> None:
    make, truth = RECORDS[name]
    assert not np.any(make().finalize())
    one = tuple(a[:1] for a in rows)
    np.testing.assert_allclose(update(make(), *one).finalize(), truth(*one), rtol=1e-12)


def test_float32_cells_do_not_depend_on_cuts_where_blocks_end(rng: np.random.Generator) -> None:
    """Not to the last bit: that is what lets several processes end with the codes of one."""
    X = rng.normal(size=(3 * 2048 + 100, 5)).astype(np.float32)
    codes = rng.integers(0, 16, (len(X), 2)).astype(np.int32)
    whole = CellSums(2, 16, 5).update(X, codes)
    first, second = CellSums(2, 16, 5).update(X[:2048], codes[:2048]), CellSums(2, 16, 5).update(X[2048:], codes[2048:])
    np.testing.assert_array_equal(second.merge(first).sums.astype(np.float32), whole.sums.astype(np.float32))
    exact = np.zeros((16, 5))
    np.add.at(exact, codes[:, 0], X.astype(np.float64))
    np.testing.assert_allclose(whole.sums[0], exact, atol=2e-3)


def test_codes_beyond_the_cells_are_refused() -> None:
    """Before, the compiled loop wrote outside of its arrays."""
    for codes in ([[0, 4]], [[-1, 0]], [[0, 0, 0]], [[0, 0], [0, 0]]):
        with pytest.raises(ValueError, match=r"codes"):
            CellSums(2, 4, 3).update(np.ones((1, 3)), np.array(codes))
