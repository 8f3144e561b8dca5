"""SVRG-SBB's convex baseline: its gradient against differences; eq. 47 as printed."""

import numpy as np
import pytest

from benchmarks.papers.svrg_convex import GramObjective
from benchmarks.papers.svrg_synthetic import LOSSES
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows
from tests.embedding.ordinal.test_losses import QUESTIONS, central_differences, relative_error


@pytest.mark.parametrize("width", QUESTIONS)
@pytest.mark.parametrize("name", LOSSES)
def test_gradient_on_gram_matrix_is_the_derivative(name, width, rng):
    X = rng.normal(0, 0.7, (5, 3))
    problem = GramObjective(QUESTIONS[width], 5, get_loss(name, 3), weights=np.array([1.0, 2, 1, 0.5, 3]))
    found = problem.value_and_gradient(X @ X.T)[1]
    wanted = central_differences(lambda G: problem.value_and_gradient(G)[0], X @ X.T)
    assert relative_error(found, wanted) < 1e-6, f"{name}, {width}: {relative_error(found, wanted):.2e}"


def test_eq_47_as_printed_is_ste_and_not_the_crowd_kernel(rng):
    """-log of e^-a / (e^-a + e^-b), a and b the squared distances of the near and the far pair."""
    X = rng.normal(0, 0.7, (5, 3))
    D = ((X[:, None] - X) ** 2).sum(-1)
    i, j, k = QUESTIONS["triplet"].T
    printed = -np.log(np.exp(-D[i, j]) / (np.exp(-D[i, j]) + np.exp(-D[i, k]))).sum() * 5 / len(i)
    ste, ckl = (
        OrdinalObjective(QUESTIONS["triplet"], 5, get_loss(name, 3), dtype=np.float64).value(pad_rows(X, np.float64))
        for name in ("ste", "ckl")
    )
    assert ste == pytest.approx(printed)
    assert abs(ckl - ste) > 1e-3
