"""The papers' tables and figures: every record has a verdict that its claims support, and a sentence."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from benchmarks.judging import Gap, paired, relative, told, unpaired
from benchmarks.papers import experiments
from benchmarks.papers.record import Claim, Figure, not_measured
from benchmarks.papers.table import PAPERS
from benchmarks.table import RESULTS, Results
from tests.covering import each

VERDICTS = {"reproduced", "in part", "not reproduced", "not measured"}
FIGURES = [make for module in PAPERS.values() for make in module.FIGURES]


@each("make", FIGURES)
def test_a_record_of_the_committed_results(make) -> None:
    figure = make(Results(RESULTS))
    assert figure.verdict in VERDICTS
    assert figure.name
    assert figure.source
    assert figure.why.endswith(".")
    assert "Run `" not in figure.why, f"{figure.name}: its results are not there; {figure.why}"
    assert all(claim.ours for claim in figure.claims)
    cells = [figure.decides, *(cell for claim in figure.claims for cell in claim.row())]
    long = [cell for cell in cells if len(cell.split()) > 25]
    assert not long, f"{figure.name}: a cell of more than 25 words: {long[0]}"
    if figure.verdict in ("in part", "not reproduced"):
        assert figure.decides.endswith("."), f"{figure.name}: what decides it?"
        assert any(letter.isdigit() for letter in figure.decides), f"{figure.name}: which figure shows it?"


@each("make", FIGURES)
def test_what_was_not_run_is_not_measured(make, tmp_path: Path) -> None:
    figure = make(Results(tmp_path))
    assert figure.verdict == "not measured"
    assert figure.why.endswith(".")


def test_a_gap_is_students_interval_over_pairs(rng: np.random.Generator) -> None:
    for shift in (0.0, 0.5, 3.0):
        first, second = rng.normal(shift, 1, 8), rng.normal(0, 1, 8)
        gap, test = paired(list(first), list(second)), ttest_rel(first, second)
        low, high = test.confidence_interval(0.95)
        assert (gap.mean - gap.half, gap.mean + gap.half) == pytest.approx((low, high))
        assert gap.level == (test.pvalue > 0.05)
        assert gap.ahead == (test.pvalue <= 0.05 and test.statistic > 0)
        assert gap.behind == (test.pvalue <= 0.05 and test.statistic < 0)
    assert paired([1.0], [0.0]).level, "one run decides nothing"
    assert relative([2.2, 2.2, 2.3], [2.0, 2.0, 2.1]).mean == pytest.approx(9.836, abs=1e-3)


def test_means_and_deviations_alone_give_welchs_interval(rng: np.random.Generator) -> None:
    first, second = rng.normal(1, 1, 5), rng.normal(0, 3, 5)
    low, high = ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    gap = unpaired((first.mean(), first.std()), (second.mean(), second.std()), 5)
    assert (gap.mean - gap.half, gap.mean + gap.half) == pytest.approx((low, high))


def test_signs_are_words() -> None:
    assert told(Gap(4.42, 0.2, 9), "worse", "better") == "4.4 % worse (4.2 to 4.6)"
    assert told(Gap(-4.42, 0.2, 9), "worse", "better") == "4.4 % better (4.2 to 4.6)"
    assert told(Gap(0.1, 0.2, 9), "worse", "better") == "level: 0.10 % worse (0.10 better to 0.30 worse)"
    assert told(Gap(1.0, math.inf, 1), "worse", "better") == "1.0 % worse, one run"
    assert told(Gap(0.0, 0.0, 9)) == "equal"


def test_every_result_names_its_commit() -> None:
    for source in experiments.sources():
        assert all(experiments.commits(source)), f"{source} has rows without a commit"
    assert {row[0] for row in experiments.table().rows} == experiments.sources().keys()


def test_the_verdict_is_that_of_the_claims() -> None:
    yes, no, beside = (Claim("x", "1", "1", holds) for holds in (True, False, None))
    assert Figure("f", (yes, beside), "s.", "j").verdict == "reproduced"
    assert Figure("f", (yes, no), "s.", "j").verdict == "in part"
    assert Figure("f", (no, beside), "s.", "j").verdict == "not reproduced"
    assert not_measured("f", "s.", beside=(beside,)).verdict == "not measured"
    assert Figure("f", (yes, no, no), "s.", "j").score == "1 of 3"
