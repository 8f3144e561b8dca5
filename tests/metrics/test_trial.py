"""Paired differences: Student's interval, which holds the true mean as often as it says."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from nearkin.metrics.trial import paired_difference


def test_interval_and_error_are_those_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.random((2, 40))
    found, test = paired_difference(one, other), ttest_rel(one, other)
    interval = test.confidence_interval(0.95)
    np.testing.assert_allclose(found[2:], [interval.low, interval.high])
    assert found.mean / found.error == pytest.approx(test.statistic)
    assert found.clear == (test.pvalue < 0.05)


@pytest.mark.parametrize("n", [6, 30, 300])
def test_equal_candidates_rarely_differ_clearly(n: int) -> None:
    """Recall of one relevant row, 0 or 1 for each query: the largest rounding of an interval there is."""
    rng = np.random.default_rng(n)
    clear = [paired_difference(*(rng.random((2, n)) < 0.3)).clear for _ in range(1000)]
    assert np.mean(clear) < 0.075


def test_few_queries_prove_nothing() -> None:
    for n in range(1, 6):
        found = paired_difference(np.full(n, 0.5), np.zeros(n))
        assert not found.clear
        assert found.low <= 0 < found.high
        assert "a tie, +0.5000" in str(found)
    assert paired_difference(np.full(6, 0.5), np.zeros(6)).clear
    assert paired_difference([0.25], [0.75]).error == 0.5
    assert not paired_difference([0.3, 0.1], [0.3, 0.1]).clear


def test_values_of_other_queries_are_refused() -> None:
    for one, other in (([0.1, 0.2], [0.1]), ([], []), ([[0.1]], [[0.1]])):
        with pytest.raises(ValueError, match="one for each query"):
            paired_difference(one, other)
