"""The Haar law by its moments."""

import pytest
import torch

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import orthogonality_error
from tests.covering import each


def moments(X: torch.Tensor) -> tuple[float, float, float]:
    """E x_11, d E x_11^2 and d (d + 2) / 3 E x_11^4, in turn 0, 1, 1 for Haar; x_11 is of X's every first entry."""
    d, x = X.shape[-2], X[:, 0, 0].double()
    return float(x.mean()) * d**0.5, d * float((x**2).mean()), d * (d + 2) / 3 * float((x**4).mean())


@each(("d", "k", "special"), [(4, 4, False), (4, 4, True), (5, 5, True), (6, 2, False)])
def test_moments_of_the_uniform_law(d: int, k: int, special: bool) -> None:
    X = haar_orthogonal(20000, d, k, special=special, random_state=0)
    assert orthogonality_error(X) < 1e-5
    mean, second, fourth = moments(X)
    assert abs(mean) < 0.03
    assert second == pytest.approx(1, abs=0.04)
    assert fourth == pytest.approx(1, abs=0.08)
    corner = X[:, k - 1, k - 1].double()  # no axis is special
    assert d * float((corner**2).mean()) == pytest.approx(1, abs=0.04)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="k <= d"):
        haar_orthogonal(3, 4)
    with pytest.raises(ValueError, match="square"):
        haar_orthogonal(4, 3, special=True)
