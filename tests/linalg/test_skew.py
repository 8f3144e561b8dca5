"""Skew gradients: f falls by ||Omega||^2 / 2 along exp(-t Omega) in both forms; single entries agree."""

import pytest
import torch

from nearkin.linalg.skew import drop_normal, left_skew, left_skew_entries, right_skew
from tests.covering import each
from tests.orthogonal.steps import problem
from tests.reference.tangent import tangent_gradient


@each(("d", "k"), [(6, 6), (7, 3), (5, 1)])
def test_left_form_is_the_derivative_along_its_flow(d: int, k: int) -> None:
    X, G = problem(d, k)
    Omega, t = left_skew(X, G), 1e-5
    ahead, behind = (float((G * (torch.matrix_exp(-s * Omega) @ X)).sum()) for s in (t, -t))
    assert (ahead - behind) / (2 * t) == pytest.approx(-float(Omega.square().sum()) / 2, rel=1e-6)
    torch.testing.assert_close(tangent_gradient(X, G), Omega @ X)
    tangent = drop_normal(X, G)  # normal parts do not count
    torch.testing.assert_close(left_skew(X, tangent), Omega)
    torch.testing.assert_close(X.T @ tangent, -tangent.T @ X)


def test_right_form_is_minus_gcds_matrix_and_along_the_same_flow() -> None:
    X, G = problem(6, 6)
    A = right_skew(X, G)
    torch.testing.assert_close(A, X.T @ G - G.T @ X)
    torch.testing.assert_close(X @ A, left_skew(X, G) @ X)  # one curve, two frames


@each("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_entries_agree_with_the_matrix(dtype: torch.dtype) -> None:
    pairs = torch.tensor([[0, 3], [2, 1], [5, 4], [0, 0]])
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 0.1}[dtype]
    for d, k in ((6, 3), (6, 6)):
        X, G = (part.to(dtype) for part in problem(d, k))
        for x, g in ((X, G), (X.mT.contiguous().mT, G.mT.contiguous().mT)):
            found = left_skew_entries(x, g, pairs)
            assert found.dtype == dtype
            torch.testing.assert_close(found, left_skew(X, G)[pairs[:, 0], pairs[:, 1]], rtol=0, atol=tolerance)
    torch.testing.assert_close(right_skew(X, G), -left_skew(X.mT, G.mT), rtol=0, atol=tolerance)
    G[2, 3] = torch.nan
    assert left_skew_entries(X, G, pairs[1:2]).isnan().all()
