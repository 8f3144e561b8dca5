"""The fit behind a survey: what an answer says is one event, and is not asked again."""

import numpy as np

from nearkin.web.ask.model import Job, fit
from nearkin.web.ask.questions import FORMS, answers_of


def learnt(form, n=8, count=150):
    """Items on a line, asked and answered as the page does: comparisons (m, 4)."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(count):
        shown = FORMS[form].random(n, rng)
        a, b, c = shown
        if form == "odd-one-out":
            choice = int(np.argmin([abs(b - c), abs(a - c), abs(a - b)]))
        else:
            choice = int(abs(a - c) < abs(a - b))
        rows += FORMS[form].implied(shown, choice)
    return answers_of(rows)


def job(form, rows, rows_per_answer):
    held_out = learnt(form, count=20)
    return Job(8, rows, held_out, 1, 30, 0, rows_per_answer)


def test_odd_one_out_answers_are_one_event_each():
    rows = learnt("odd-one-out")
    joint, separate = (fit(job("odd-one-out", rows, per)) for per in (2, 1))
    assert joint.error < 0.15
    assert not np.array_equal(joint.embedding, separate.embedding)


def test_the_model_does_not_ask_what_it_has_learnt_from():
    rows = learnt("triplet", count=80)
    asked = {(i, *sorted((j, k))) for i, j, _, k in rows.tolist()}
    found = fit(job("triplet", rows, 1)).questions
    assert len(found) > 5
    assert not {(i, *sorted((j, k))) for i, j, k in found} & asked
