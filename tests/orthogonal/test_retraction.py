"""Retractions: on the manifold, right to first order at least, and the thin forms agree with the d x d ones."""

import pytest
import torch

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import nearest_orthogonal, orthogonality_error
from nearkin.linalg.skew import left_skew, right_skew
from nearkin.orthogonal.retraction import (
    RETRACTIONS,
    TOLERANCE,
    inverse_polynomial,
    left_step,
    newton_schulz_orthonormalize,
    right_step,
)
from tests.covering import covering, each
from tests.orthogonal.steps import gradient, point
from tests.reference.tangent import tangent_gradient

ORDER = {"exp": 9, "cayley": 3, "qr": 2, "polar": 2, "newton-schulz": 2, "taylor": 3}  # of the error against exp
each_retraction = each("retraction", RETRACTIONS)


def problem(*shape: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    return point(shape, 0, dtype), gradient(shape, 1, dtype)


def step_of(X: torch.Tensor, G: torch.Tensor, t: float, retraction: str) -> torch.Tensor:
    square = X.shape[-2] == X.shape[-1]
    return right_step(X, right_skew(X, G), t, retraction) if square else left_step(X, G, t, retraction)


@each_retraction
@each("shape", [(6, 6), (20, 5), (7, 1)])
def test_the_error_against_the_geodesic_has_the_known_order(retraction: str, shape: tuple[int, ...]) -> None:
    # first-order correctness is what geoopt's canonical Stiefel retraction lacks: 55 % error on a 20 x 5 example
    X, G = problem(*shape)
    Omega = left_skew(X, G)
    errors = []
    for t in (1e-3, 1e-2):
        errors.append(float((step_of(X, G, t, retraction) - torch.matrix_exp(-t * Omega) @ X).norm()))
        assert errors[-1] < 1.5 * t * float((t * Omega @ X).norm()) * float(torch.linalg.matrix_norm(Omega, 2))
    if retraction == "exp" or (retraction == "taylor" and shape[0] != shape[1]):
        assert max(errors) < 1e-11, errors  # torch.matrix_exp itself is off by 2e-12 at small norms
    else:
        assert errors[1] / errors[0] > 0.7 * 10 ** ORDER[retraction]  # more, where symmetry cancels a term


def test_qr_and_polar_are_the_factors_they_are_named_after() -> None:
    X, G = problem(9, 4)
    M = X - 0.3 * tangent_gradient(X, G)
    Q, R = torch.linalg.qr(M)
    torch.testing.assert_close(left_step(X, G, 0.3, "qr"), Q * R.diagonal().sign(), rtol=0, atol=1e-12)
    torch.testing.assert_close(left_step(X, G, 0.3, "polar"), nearest_orthogonal(M), rtol=0, atol=1e-12)
    schulz, polar = (left_step(X, G, 0.01, name) for name in ("newton-schulz", "polar"))
    torch.testing.assert_close(schulz, polar, rtol=0, atol=1e-9)


def test_a_large_normal_part_does_not_hurt() -> None:
    X, G = problem(50, 4, dtype=torch.float32)
    with_normal = G + 1e3 * X
    for retraction in RETRACTIONS:
        plain, shifted = left_step(X, G, 0.1, retraction), left_step(X, with_normal, 0.1, retraction)
        assert orthogonality_error(shifted) < 3e-5, retraction
        torch.testing.assert_close(plain, shifted, rtol=0, atol=2e-3)


def test_a_matrix_far_away_is_left_to_qr() -> None:
    M = torch.diag(torch.tensor([3.0, 0.1, -1.0]))
    assert orthogonality_error(newton_schulz_orthonormalize(M.clone())) < 1e-6
    with pytest.raises(ValueError, match=r"step is not finite.*lower lr"):
        newton_schulz_orthonormalize(M * float("nan"))


@each(
    ("retraction", "t", "shape", "dtype"),
    covering(
        [*RETRACTIONS], [1e-3, 0.3, 30.0, 1e3, 1e6, 1e12], [(8, 8), (9, 4), (5, 4), (7, 1), (2, 3, 8, 3)],
        [torch.float32, torch.float64],
    ),
)  # fmt: skip
def test_steps_of_any_length_stay_on_the_manifold(
    retraction: str, t: float, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    X, G = problem(*shape, dtype=dtype)
    bound = max(TOLERANCE[dtype], 8 * torch.finfo(dtype).eps)  # rounding of a factorisation
    for _ in range(50):  # on tall points "exp" and "cayley" once made what rounding left grow with each step
        X = left_step(X, G, t, retraction)
        assert orthogonality_error(X) < bound
    X, G = problem(8, 8, dtype=dtype)
    assert orthogonality_error(right_step(X, right_skew(X, G), t, retraction)) < bound


def test_cayley_of_a_step_so_long_that_its_matrix_is_singular() -> None:
    A = torch.zeros(6, 6)
    A[:3, :3] = torch.ones(3, 3).triu(1) - torch.ones(3, 3).tril(-1)  # three axes, rank two
    for t in (1e3, 1e6, 1e10, 1e15):
        moved = right_step(haar_orthogonal(6, 6, random_state=0), A, t, "cayley")
        assert orthogonality_error(moved) < 2e-6


@each("shape", [(9, 4), (5, 4)])
@each("retraction", ["exp", "cayley"])
@each("length", [0.5, 300.0])
def test_tall_steps_are_those_of_the_full_matrix(retraction: str, shape: tuple[int, ...], length: float) -> None:
    """Cayley's runs forward: the flows paper's Y(Omega) = (I + Omega/2)^-1 (I - Omega/2) has derivative -Omega, so
    that with Y(eta Omega) its eq. 4, meant as ascent, descends."""
    X, G = problem(*shape)
    t = length / float(torch.linalg.matrix_norm(left_skew(X, G), 2))
    W, identity = t * left_skew(X, G), torch.eye(len(X), dtype=X.dtype)
    full = torch.linalg.solve(identity + W / 2, identity - W / 2) if retraction == "cayley" else torch.matrix_exp(-W)
    torch.testing.assert_close(left_step(X, G, t, retraction), full @ X, rtol=0, atol=1e-11)
    assert length > 1 or float((full @ X - X).flatten() @ tangent_gradient(X, G).flatten()) < 0


@each("power", [-9, -4, 0, 8])
def test_the_polynomial_of_an_inverse_leaves_what_it_says(power: int) -> None:
    coefficients, error = inverse_polynomial(power)
    u = torch.linspace(-(2.0 ** (power / 2)), 0, 1001, dtype=torch.float64)
    left = 1 - (1 - u) * sum(c * u**i for i, c in enumerate(coefficients))
    assert float(left.abs().max()) == pytest.approx(error, rel=1e-3, abs=1e-14)
    assert coefficients[0] == pytest.approx(1, abs=1e-14)
