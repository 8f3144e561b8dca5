"""Doors of the compiled kernels: an index that points outside is an error, never a write outside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from nearkin.linalg import rotate_columns, rotate_rows

each_rotation = pytest.mark.parametrize("rotate", [rotate_rows, rotate_columns])
TAKERS: dict[str, Callable[[Any], Any]] = {  # everything that takes axes of a 4 x 4 matrix
    "rotate_rows": lambda pairs: rotate_rows(np.eye(4), pairs, np.full(len(pairs), 0.1)),
    "rotate_columns": lambda pairs: rotate_columns(np.eye(4), pairs, np.full(len(pairs), 0.1)),
    "rotate_rows in 16 bits": lambda pairs: rotate_rows(torch.eye(4).bfloat16(), pairs, np.full(len(pairs), 0.1)),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("axis", [10**7, 4, -1, -9])
def test_rotate_rows_with_an_axis_outside_is_an_error_and_no_segfault(taker: str, axis: int) -> None:
    with pytest.raises(ValueError, match=rf"holds the axis {axis}; it must lie within 0\.\.3"):
        TAKERS[taker]([[0, axis]])


@pytest.mark.parametrize("taker", TAKERS)
def test_a_pair_of_one_axis_with_itself_is_refused(taker: str) -> None:
    with pytest.raises(ValueError, match="holds the axis 2 twice"):
        TAKERS[taker]([[0, 1], [2, 2]])


@pytest.mark.parametrize("taker", ["rotate_rows", "rotate_rows in 16 bits"])
def test_a_matching_that_repeats_an_axis_is_refused(taker: str) -> None:
    with pytest.raises(ValueError, match=r"holds the axis 1 twice.*disjoint"):
        TAKERS[taker]([[0, 1], [1, 2]])


@pytest.mark.parametrize("taker", TAKERS)
def test_axes_are_integers_in_pairs(taker: str) -> None:
    with pytest.raises(TypeError, match=r"float.*integers"):
        TAKERS[taker]([[0.0, 1.0]])
    with pytest.raises(ValueError, match=r"shape"):
        TAKERS[taker]([0, 1])


@each_rotation
@pytest.mark.parametrize("angle", [np.nan, np.inf])
def test_angles_that_are_not_finite_turn_nothing(rotate: Callable[..., Any], angle: float) -> None:
    X = np.eye(4)
    with pytest.raises(ValueError, match=r"theta contains NaN"):
        rotate(X, [[0, 1], [2, 3]], [0.1, angle])
    np.testing.assert_array_equal(X, np.eye(4))


@each_rotation
def test_one_angle_for_each_pair(rotate: Callable[..., Any]) -> None:
    for theta in (0.1, [0.1], [0.1, 0.2, 0.3]):
        with pytest.raises(ValueError, match=r"theta has shape"):
            rotate(np.eye(4), [[0, 1], [2, 3]], theta)
    with pytest.raises(ValueError, match=r"pairs has shape \(3, 2, 2\); it must broadcast"):
        rotate(np.eye(4), np.tile([[0, 1], [2, 3]], (3, 1, 1)), [0.1, 0.2])


@each_rotation
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.eye(4, dtype=int), TypeError, "int64"),
        (np.eye(4, dtype=np.float16), TypeError, "float16"),
        (np.eye(4, dtype=">f8"), TypeError, ">f8"),
        (torch.eye(4, dtype=torch.int64), TypeError, "int64"),
        ([[1.0, 0.0], [0.0, 1.0]], TypeError, "list"),
        (np.ones(4), ValueError, "shape"),
        (np.broadcast_to(np.ones(4), (4, 4)), ValueError, "read-only"),
        (torch.ones(4).expand(4, 4), ValueError, "share memory"),
    ],
    ids=["int", "half", "byte order", "int tensor", "list", "vector", "read-only", "expanded"],
)
def test_what_cannot_be_turned_in_place_is_refused(
    rotate: Callable[..., Any], X: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        rotate(X, [[0, 1]], [0.1])


@each_rotation
def test_views_that_are_not_contiguous_are_turned_in_place(rotate: Callable[..., Any]) -> None:
    whole = np.arange(64.0).reshape(8, 8)
    expected = rotate(whole[::2, 1::2].copy(), [[0, 3], [2, 1]], [0.1, 0.2])
    rotate(whole[::2, 1::2], [[0, 3], [2, 1]], [0.1, 0.2])
    np.testing.assert_array_equal(whole[::2, 1::2], expected)
