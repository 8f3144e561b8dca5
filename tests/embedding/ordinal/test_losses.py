"""Every loss on points, for triplets and quadruplets, against central differences in float64."""

import numpy as np
import pytest

from nearkin.embedding.ordinal.losses import LOSSES, get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from tests.covering import each

QUESTIONS = {
    "triplet": np.array([[0, 1, 2], [1, 2, 0], [3, 4, 0], [2, 4, 1], [4, 0, 3]], np.uint32),
    "quadruplet": np.array([[0, 1, 2, 3], [1, 2, 1, 4], [3, 4, 0, 3], [2, 0, 4, 1], [0, 1, 1, 2]], np.uint32),
}


def central_differences(f, X, h=1e-6):
    gradient = np.zeros_like(X)
    for place in np.ndindex(*X.shape):
        step = np.zeros_like(X)
        step[place] = h
        gradient[place] = (f(X + step) - f(X - step)) / (2 * h)
    return gradient


def relative_error(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


@each("p", [1, 3, 5])  # t-STE's alpha = 1, 2 and 4: whole and half exponents
@each("width", QUESTIONS)
@each(("name", "parameter"), [*((name, None) for name in LOSSES), ("ste", 0.3)])
def test_gradient_on_points_is_the_derivative(name, parameter, width, p, rng):
    X = rng.normal(0, 0.7, (5, p))
    loss = get_loss(name, p, parameter)
    problem = OrdinalObjective(QUESTIONS[width], 5, loss, weights=np.array([1.0, 2, 1, 0.5, 3]), dtype=np.float64)
    found = unpad_rows(problem.gradient(pad_rows(X, np.float64)), p)
    wanted = central_differences(lambda X: problem.value(pad_rows(X, np.float64)), X)
    assert relative_error(found, wanted) < 1e-6, f"{name}, {width}: {relative_error(found, wanted):.2e}"


@each("dtype", [np.float32, np.float64])
@each(("name", "parameter"), [*((name, None) for name in LOSSES), ("ste", 0.3)])
def test_far_and_coincident_points_stay_finite(name, parameter, dtype):
    for X in (np.array([[0.0], [1e4], [2e-3], [0.0], [1.0]]), np.zeros((5, 2))):
        problem = OrdinalObjective(np.array([[0, 1, 2], [0, 2, 1]]), 5, get_loss(name, 10, parameter), dtype=dtype)
        x = pad_rows(X, dtype)
        assert np.isfinite(problem.value(x))
        assert np.isfinite(problem.gradient(x)).all()


@each("name", ["ckl", "ste", "t-ste"])
def test_loss_is_minus_the_logarithm_of_the_model(name, rng):
    X = rng.normal(0, 1, (5, 3))
    loss = get_loss(name, 3)
    rows = QUESTIONS["triplet"]
    near, far = (((X[rows[:, 0]] - X[rows[:, c]]) ** 2).sum(1) for c in (1, 2))
    value = OrdinalObjective(rows, 5, loss, dtype=np.float64).value(pad_rows(X, np.float64))
    s_near, s_far = {  # similarities
        "ste": lambda d: np.exp(-d), "ckl": lambda d: 1 / (loss.parameter + d),
        "t-ste": lambda d: (1 + d / loss.parameter) ** (-(loss.parameter + 1) / 2),
    }[name](np.stack([near, far]))  # fmt: skip
    np.testing.assert_allclose(value, -np.log(s_near / (s_near + s_far)).mean() * 5, rtol=1e-12)


def test_values_by_hand():
    X = np.array([[0.0], [1.0], [2.0]])  # d_01^2 = 1, d_02^2 = 4
    near_first, far_first = np.array([[0, 1, 2]]), np.array([[0, 2, 1]])

    def value(name, rows, parameter=None):
        problem = OrdinalObjective(rows, 3, get_loss(name, 1, parameter), dtype=np.float64)
        return problem.value(pad_rows(X, np.float64)) / 3

    assert value("gnmds", near_first) == 0.0
    assert value("gnmds", far_first) == 4.0  # 1 + 4 - 1: eq. 45 as corrected
    np.testing.assert_allclose(value("ste", far_first), np.log1p(np.exp(3.0)))
    np.testing.assert_allclose(value("ste", far_first, 0.2), -np.log(0.1 + 0.8 / (1 + np.exp(3.0))))
    np.testing.assert_allclose(value("ckl", near_first, 0.5), -np.log(4.5 / 6.0))
    np.testing.assert_allclose(value("t-ste", near_first, 1.0), -np.log((1 / 2) / (1 / 2 + 1 / 5)))
    np.testing.assert_allclose(value("soe", far_first, 0.1), 1.1**2)


@each(
    ("arguments", "text"),
    [
        (("cosine", 2), "loss is 'cosine'; it must be one of 'gnmds'"),
        (("gnmds", 2, 1.0), "loss 'gnmds' has none"),
        (("ste", 2, 1.0), "at most 0.9"),
        (("ckl", 2, 0.0), "loss_parameter is 0.0; it must be greater than 0"),
    ],
)
def test_errors(arguments, text):
    with pytest.raises(ValueError, match=text):
        get_loss(*arguments)
