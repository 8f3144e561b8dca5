"""The benchmark's parts run and say something: sizes are cut down, times are not judged."""

import numpy as np
import pytest

from benchmarks.ordinal import kernel, question_tables, questions, retrieval, speed, table1
from benchmarks.ordinal.problems import comparisons_from_labels
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows


def test_time_to_target_counts_epochs_and_milliseconds():
    train, test = speed.synthetic(30, 3000, seed=0)
    found = speed.time_to_target(train, test, "ste", "auto")
    assert found["epochs"] >= 1
    assert found["ms"] > 0
    assert found["error"] < speed.TARGET
    row = {"n": 30, "m": 3000, "loss": "ste", "nearkin": {"auto": found}, "cblearn": None}
    assert "auto" in speed.line(row)


def test_published_steps_are_in_our_units():
    """5e-4 per term of f_q, on (n / m) sum f_q, moves an epoch of m terms by 5e-4 m / n."""
    chosen = table1.solvers("ste")
    assert chosen["svrg published step"][0].step == pytest.approx(0.05)
    assert table1.solvers("t-ste")["svrg published step"][0].step == pytest.approx(2.0)


def test_c_loop_computes_the_gradient():
    train, _ = speed.synthetic(20, 200, seed=0)
    x = pad_rows(np.random.default_rng(1).normal(0, 0.3, (20, 10)))
    wanted = OrdinalObjective(train.indices, 20, get_loss("gnmds", 10)).gradient(x) * 10
    found = kernel.c_gradient(x, train.indices)
    if found is None:
        pytest.skip("no C compiler")
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_questions_are_measured_and_tabulated(monkeypatch, tmp_path):
    monkeypatch.setattr(questions, "BUDGETS", (4, 6))
    truth = questions.Truth("line", np.abs(np.arange(8.0)[:, None] - np.arange(8.0)) ** 1.1, 1)
    clean = truth.random(500, np.random.default_rng(0), 0.0).quadruplets()
    assert (truth.distances[clean[:, 0], clean[:, 1]] <= truth.distances[clean[:, 2], clean[:, 3]]).all()
    rows = [{**row, "data": "line", "seeds": 1} for row in questions.active(truth, 0)]
    assert questions._needed(rows, rows[0], 4) == 1.0  # random questions need what they need
    assert set(rows[0]["error"]) == {"4", "6"}
    for part, table in ((questions.choices, question_tables.choices), (questions.raters, question_tables.raters),
                        (questions.intervals, question_tables.intervals)):  # fmt: skip
        measured = [{**row, "data": "line", "seeds": 1} for row in part(truth, 0)]
        assert len(table(measured).rows) == len(measured)


def test_odd_one_out_answerers():
    truth = questions.Truth("line", np.abs(np.arange(8.0)[:, None] - np.arange(8.0)), 1)
    for answerer in ("luce", "flips"):
        answers = questions._odd_one_out(truth, 400, answerer, np.random.default_rng(0))
        error = questions.triplet_error(np.arange(8.0)[:, None], answers)
        assert len(answers) == 800
        assert 0.02 < error < 0.45


def test_judging_a_perfect_ranking():
    base = np.array([[0.0], [0.1], [5.0], [5.1]])
    y = np.array([0, 0, 1, 1])
    row = retrieval.judge("perfect", 0.0, np.repeat(base, 50, axis=0), np.repeat(y, 50), base[[0, 2]], y[[0, 2]], 0.0)
    assert row["map"] == 1.0
    assert row["precision@100"] == 1.0
    assert row["recall@100"] == 1.0


def test_answers_from_labels_compare_classes() -> None:
    y = np.array(list("aabbbccccd"))
    made = comparisons_from_labels(y, 2000, random_state=3)
    i, j, k = made.indices.T
    assert (y[i] == y[j]).all()
    assert (y[i] != y[k]).all()
    assert set(i.tolist()) == set(range(9))  # "d" stands alone and cannot be a head
    assert set(k.tolist()) == set(range(10))
    noisy = comparisons_from_labels(y, 2000, noise=0.1, random_state=3).indices
    assert (y[noisy[:, 0]] != y[noisy[:, 1]]).sum() == 200
