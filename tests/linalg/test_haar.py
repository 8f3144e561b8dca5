"""The Haar law by its moments."""

import pytest

from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.orthonormal import orthogonality_error
from tests.covering import each


@each(("d", "k", "special"), [(4, 4, False), (4, 4, True), (5, 5, True), (6, 2, False)])
def test_moments_of_the_uniform_law(d: int, k: int, special: bool) -> None:
    X = haar_orthogonal(20000, d, k, special=special, random_state=0)
    assert orthogonality_error(X) < 1e-5
    for x in (X[:, 0, 0].double(), X[:, k - 1, k - 1].double()):  # no axis is special
        assert abs(float(x.mean())) * d**0.5 < 0.03
        assert d * float((x**2).mean()) == pytest.approx(1, abs=0.04)
        assert d * (d + 2) / 3 * float((x**4).mean()) == pytest.approx(1, abs=0.08)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="k <= d"):
        haar_orthogonal(3, 4)
    with pytest.raises(ValueError, match="square"):
        haar_orthogonal(4, 3, special=True)
