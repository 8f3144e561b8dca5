"""The benchmark's parts run and say something: sizes are cut down, times are not judged."""

import numpy as np
import pytest

from benchmarks.ordinal import questions, run
from benchmarks.papers import svrg_retrieval, svrg_synthetic


def test_time_to_target_counts_epochs_and_milliseconds():
    train, test = run.synthetic(30, 3000, seed=0)
    found = run.time_to_target(train, test, "ste")
    assert found["epochs"] >= 1
    assert found["ms"] > 0
    assert found["error"] < run.TARGET


def test_published_steps_are_in_our_units():
    """5e-4 per term of f_q, on (n / m) sum f_q, moves an epoch of m terms by 5e-4 m / n."""
    assert svrg_synthetic.published_step("svrg", "ste") == pytest.approx(0.05)
    assert svrg_synthetic.published_step("svrg", "t-ste") == pytest.approx(2.0)


def test_questions_are_measured():
    truth = questions.Truth("line", np.abs(np.arange(8.0)[:, None] - np.arange(8.0)) ** 1.1, 1)
    clean = truth.random(500, np.random.default_rng(0), clean=True).quadruplets()
    assert (truth.distances[clean[:, 0], clean[:, 1]] <= truth.distances[clean[:, 2], clean[:, 3]]).all()
    for rule in questions.RULES:
        counts = {float(count) for count in questions.active(truth, "ste", rule, 0, last=6)}
        assert counts == ({1, 1.5, 2} if rule.endswith("rankings") else {4, 6})
    assert questions.needed({"4": 0.3, "6": 0.2}, {"4": 0.25, "6": 0.1}, 6) == 1.0
    assert questions.needed({"4": 0.3, "6": 0.2}, {"4": 0.25, "6": 0.2}, 6) is None


def test_answers_from_labels_compare_classes() -> None:
    y = np.array(list("aabbbccccd"))
    made = svrg_retrieval.comparisons_from_labels(y, 2000, random_state=3)
    i, j, k = made.indices.T
    assert (y[i] == y[j]).all()
    assert (y[i] != y[k]).all()
    assert set(i.tolist()) == set(range(9))  # "d" stands alone and cannot be a head
    assert set(k.tolist()) == set(range(10))
