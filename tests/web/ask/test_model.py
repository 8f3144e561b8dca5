"""The fit behind a survey: what an answer says is one event, and is not asked again."""

import os
import signal
from contextlib import closing

import numpy as np
import pytest

from nearkin.records import Comparisons
from nearkin.web.ask import model
from nearkin.web.ask.model import Learner, fit
from nearkin.web.ask.questions import FORMS, Question
from tests.web.browser import wait_until


def learnt(form, n=8, count=150):
    """Items on a line, asked and answered as the page does: comparisons (m, 4)."""
    rng, questions = np.random.default_rng(0), []
    for number in range(count):
        shown = FORMS[form].random(n, rng)
        a, b, c = shown
        if form == "odd-one-out":
            choice = int(np.argmin([abs(b - c), abs(a - c), abs(a - b)]))
        else:
            choice = int(abs(a - c) < abs(a - b))
        questions.append(Question(number, "x", "random", shown, choice))
    return FORMS[form].all_comparisons(questions)


def job(form, rows, rows_per_answer, raters=None):
    names, events = np.arange(8), None if rows_per_answer == 1 else np.arange(len(rows)) // rows_per_answer
    raters = None if raters is None else np.repeat(raters, rows_per_answer)
    answers = Comparisons(rows, names, annotators=raters, events=events)
    return answers, Comparisons(learnt(form, count=20), names), 0


def test_odd_one_out_answers_are_one_event_each():
    rows = learnt("odd-one-out")
    joint, separate = (fit(*job("odd-one-out", rows, per)) for per in (2, 1))
    assert joint.error is not None
    assert joint.error < 0.15
    assert not np.array_equal(joint.embedding, separate.embedding)


def test_the_model_does_not_ask_what_it_has_learnt_from():
    rows = learnt("triplet", count=80)
    asked = {(i, *sorted((j, k))) for i, j, _, k in rows.tolist()}
    found = fit(*job("triplet", rows, 1)).questions
    assert len(found) > 5
    assert not {(i, *sorted((j, k))) for i, j, k in found} & asked


def test_a_rater_who_answers_at_random_weighs_less():
    rng = np.random.default_rng(1)
    rows = learnt("triplet", count=240)
    raters = np.arange(len(rows)) % 3
    flipped = (raters == 2) & (rng.random(len(rows)) < 0.5)
    rows[flipped] = rows[flipped][:, [0, 3, 2, 1]]
    found = fit(*job("triplet", rows, 1, raters))
    assert set(found.weights) == {0, 1, 2}
    assert found.weights[2] < 0.5 * min(found.weights[0], found.weights[1])


def test_raters_are_weighed_by_answers_and_not_by_the_comparisons_that_an_answer_says():
    rows = learnt("odd-one-out", count=40)  # 20 answers of each, 40 comparisons
    assert fit(*job("odd-one-out", rows, 2, np.arange(40) % 2)).weights == {}


def ends(*job):
    """A fit whose process is killed, as for memory."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def learner():
    with closing(Learner()) as made:
        yield made


def test_a_model_whose_process_is_killed_says_so_and_learns_again(monkeypatch, learner):
    made = job("triplet", learnt("triplet", count=40), 1)
    with monkeypatch.context() as patched:
        patched.setattr(model, "fit", ends)
        learner.offer(lambda: made, 40)
        wait_until(lambda: learner.take() is None and learner.failure)
    assert "Broken" in str(learner.failure)
    learner.offer(lambda: made, 60)
    assert wait_until(learner.take).n_answers == 40
    assert learner.failure is None
