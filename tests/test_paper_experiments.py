"""The papers' protocols in small: GCD's figures, SVRG-SBB's convex baseline and eq. 47, and what pages quote."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.papers import gcd_figure_2, gcd_figure_3
from benchmarks.papers.experiments import OTHERS, commits, sources
from benchmarks.papers.svrg_convex import GramObjective
from benchmarks.papers.svrg_synthetic import LOSSES
from benchmarks.papers.table import PAPERS
from benchmarks.subjects import SUBJECTS
from benchmarks.table import RESULTS, Results
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.skew import right_skew
from tests.covering import each
from tests.embedding.ordinal.test_losses import QUESTIONS, central_differences, relative_error


@pytest.fixture
def rows(rng: np.random.Generator) -> np.ndarray:
    return (rng.standard_normal((900, 16)) @ rng.standard_normal((16, 16))).astype(np.float32)


@each("rule", gcd_figure_2.RULES)
def test_a_short_step_of_algorithm_2_descends_and_stays_a_rotation(rows: np.ndarray, rule: str) -> None:
    rng, R = np.random.default_rng(0), np.eye(16)
    T = rows.astype(float) @ np.linalg.qr(rng.standard_normal((16, 16)))[0]
    moment = rows.T @ T / len(rows)
    moved = gcd_figure_2.descend(R, moment, rule, 1e-4, rng)
    errors = [((rows @ Q - T) ** 2).sum() for Q in (R, moved)]
    assert errors[1] < errors[0]
    np.testing.assert_allclose(moved.T @ moved, np.eye(16), atol=1e-12)


@each("rule", ["GCD-G", "OPQ, identity start", "OPQ, random start"])
def test_the_curve_is_the_distortion(rows: np.ndarray, rule: str) -> None:
    found = gcd_figure_2.run(rows, gcd_figure_2.Size(rounds=3), rule, 1e-4, 0)
    assert len(found["curve"]) == 3
    assert 0 < found["curve"][-1] < found["curve"][0] < float((rows**2).sum(axis=1).mean())


@each("width", QUESTIONS)
@each("name", LOSSES)
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


@each("rule", ["Cayley", "GCD-R", "GCD-G", "GCD-S"])
def test_one_lambda_turns_every_rules_pairs_by_the_same_angle(rule: str) -> None:
    """R' - R = -lambda / sqrt(2) R A on the pairs chosen, to first order; Cayley chooses all of them."""
    model = gcd_figure_3.Model((3, 3), 6).double()
    model.R.data = haar_orthogonal(6, 6, random_state=0, dtype=torch.float64)
    model.R.grad = torch.from_numpy(np.random.default_rng(1).standard_normal((6, 6)))
    R, A = model.R.detach().clone(), right_skew(model.R.detach(), model.R.grad)
    gcd_figure_3.descent(model, rule, 0, 1e-6)()
    moved = R.T @ (model.R.detach() - R) / 1e-6
    expected = -A / 2**0.5
    chosen = moved.abs() > 1e-3 * expected.abs().max()
    assert int(chosen.sum()) == (30 if rule == "Cayley" else 6)
    torch.testing.assert_close(moved[chosen], expected[chosen], rtol=1e-4, atol=1e-4)


def test_the_index_is_straight_through_and_its_distortion_trains_the_codebooks() -> None:
    model = gcd_figure_3.Model((4, 5), 4)
    model.codebooks = nn.Parameter(torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(0)))
    X = torch.randn(7, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    T, distortion = model.through(X)
    torch.testing.assert_close(distortion, (X - T).square().sum(1).mean())
    (slope,) = torch.autograd.grad(T.sum(), X, retain_graph=True)
    torch.testing.assert_close(slope, torch.ones_like(X))
    distortion.backward()
    assert model.codebooks.grad is not None
    assert float(model.codebooks.grad.abs().max()) > 0


def test_the_pages_quote_what_a_command_writes() -> None:
    """Results are there, and every JSON has a command that makes it, of a subject and a part that are there."""
    quoted = {word for paper in PAPERS.values() for make in paper.FIGURES
              for word in re.findall(r"\w+", make(Results(RESULTS)).source)}  # fmt: skip
    assert quoted - {"none"} == sources().keys()
    assert all(commits(source) for source in quoted - {"none"})
    for command in "; ".join(OTHERS.values()).split("; "):
        subject, *words = command.split()
        assert not words or words[0].startswith("--") or SUBJECTS[subject].has_part(words[0]), command
