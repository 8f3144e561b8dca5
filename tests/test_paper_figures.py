"""The protocols of GCD's Figure 3, the flows' Table 2 and Figure 4, and SCQ's splits, in small."""

import re

import numpy as np
import torch
from torch import nn

from benchmarks.papers import gcd_figure_3
from benchmarks.papers.experiments import OTHERS, commits, sources
from benchmarks.papers.table import PAPERS
from benchmarks.subjects import SUBJECTS
from benchmarks.table import RESULTS, Results
from nearkin.linalg.haar import haar_orthogonal
from nearkin.linalg.skew import right_skew
from tests.covering import each


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
