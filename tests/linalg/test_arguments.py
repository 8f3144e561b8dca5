"""Doors of the compiled kernels: an index that points outside is an error, never a write outside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from nearkin.linalg.givens import rotate_columns, rotate_rows
from tests.covering import each

each_rotation = each("rotate", [rotate_rows, rotate_columns])
EYE, FREE = np.eye(4), [[0, 1], [2, 3]]
REFUSED: list[tuple[Any, Any, Any, type[Exception], str]] = [  # X, pairs, angles
    *((EYE, [[0, axis]], [0.1], ValueError, rf"holds the axis {axis}; it must lie within 0\.\.3") for axis in (4, -1)),
    *((EYE, [[axis, 0]], [0.1], ValueError, rf"the axis {axis}; it must lie within") for axis in (10**7, -9)),
    (torch.eye(4).bfloat16(), [[0, 10**7]], [0.1], ValueError, "holds the axis 10000000; it must lie within"),
    (EYE, [[0, 1], [2, 2]], [0.1, 0.1], ValueError, "holds the axis 2 twice"),
    (torch.eye(4).bfloat16(), [[0, 1], [2, 2]], [0.1, 0.1], ValueError, "holds the axis 2 twice"),
    (EYE, [[0.0, 1.0]], [0.1], TypeError, "float.*integers"),
    (EYE, [0, 1], [0.1], ValueError, "shape"),
    *((EYE, FREE, [0.1, angle], ValueError, "theta contains NaN") for angle in (np.nan, np.inf)),
    *((EYE, FREE, theta, ValueError, "theta has shape") for theta in (0.1, [0.1], [0.1, 0.2, 0.3])),
    (EYE, [FREE] * 3, [0.1, 0.2], ValueError, r"pairs has shape \(3, 2, 2\); it must broadcast"),
    (np.eye(4, dtype=int), [[0, 1]], [0.1], TypeError, "int64"),
    (np.eye(4, dtype=np.float16), [[0, 1]], [0.1], TypeError, "float16"),
    (np.eye(4, dtype=">f8"), [[0, 1]], [0.1], TypeError, ">f8"),
    (torch.eye(4, dtype=torch.int64), [[0, 1]], [0.1], TypeError, "int64"),
    ([[1.0, 0.0], [0.0, 1.0]], [[0, 1]], [0.1], TypeError, "list"),
    (np.ones(4), [[0, 1]], [0.1], ValueError, "shape"),
    (np.broadcast_to(np.ones(4), (4, 4)), [[0, 1]], [0.1], ValueError, "read-only"),
    (torch.ones(4).expand(4, 4), [[0, 1]], [0.1], ValueError, "share memory"),
]


@each_rotation
@each(("X", "pairs", "theta", "error", "message"), REFUSED)
def test_what_cannot_be_turned_is_refused_and_left_alone(
    rotate: Callable[..., Any], X: Any, pairs: Any, theta: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        rotate(X, pairs, theta)
    np.testing.assert_array_equal(EYE, np.eye(4))


@each("X", [np.eye(4), torch.eye(4).bfloat16()])
def test_a_matching_of_rows_that_repeats_an_axis_is_refused(X: Any) -> None:
    with pytest.raises(ValueError, match=r"holds the axis 1 twice.*disjoint"):
        rotate_rows(X, [[0, 1], [1, 2]], [0.1, 0.1])


@each_rotation
def test_views_that_are_not_contiguous_are_turned_in_place(rotate: Callable[..., Any]) -> None:
    whole = np.arange(64.0).reshape(8, 8)
    expected = rotate(whole[::2, 1::2].copy(), [[0, 3], [2, 1]], [0.1, 0.2])
    rotate(whole[::2, 1::2], [[0, 3], [2, 1]], [0.1, 0.2])
    np.testing.assert_array_equal(whole[::2, 1::2], expected)
