"""A survey keeps every answer that it acknowledged, asks each question once, and takes back what is undone."""

import csv
import json
import re
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from nearkin.web.ask import Plan, Survey, model
from nearkin.web.ask.questions import FORMS
from nearkin.web.ask.server import state, votes
from tests.covering import each
from tests.web.ask.conftest import NAMES, OpenSurvey


def lines(survey: Survey) -> list[dict[str, str]]:
    with survey.out.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_an_answer_is_a_line_of_the_table(survey: Survey) -> None:
    key = survey.join("anna").key
    question = survey.ask(key)
    anchor, left, right = (NAMES[item] for item in question.shown)
    survey.answer(key, question.number, 1, seconds=2.5)
    (line,) = lines(survey)
    assert (line["anchor"], line["near"], line["far"]) == (anchor, right, left)
    assert (line["rater"], line["seconds"], line["question"]) == ("anna", "2.50", "0")
    assert line["shown"] == f"{anchor} | {left} | {right}"


def test_the_same_answer_sent_twice_is_kept_once_and_another_is_refused(survey: Survey) -> None:
    key = survey.join().key
    number = survey.ask(key).number
    survey.answer(key, number, 0)
    survey.answer(key, number, 0)
    assert len(lines(survey)) == 1
    with pytest.raises(ValueError, match="answered already"):
        survey.answer(key, number, 1)


def test_undo_opens_the_last_question_again_and_takes_its_line_away(survey: Survey) -> None:
    key = survey.join().key
    for _ in range(2):
        survey.answer(key, survey.ask(key).number, 0)
    again = survey.undo(key)
    assert again is not None
    assert survey.ask(key).number == again.number == 1
    assert [line["question"] for line in lines(survey)] == ["0"]
    survey.answer(key, again.number, 1)
    assert [line["question"] for line in lines(survey)] == ["0", "1"]


def test_cannot_say_is_kept_in_the_journal_and_has_no_line(survey: Survey) -> None:
    key = survey.join().key
    survey.answer(key, survey.ask(key).number, -1)
    assert lines(survey) == []
    assert json.loads(survey.journal.path.read_text().splitlines()[-1])["choice"] == -1
    assert state(survey)["raters"][0]["cannot_say"] == 1.0


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_a_survey_that_was_killed_goes_on_where_it_stood(open_survey: OpenSurvey, cut: int) -> None:
    survey = open_survey()
    key = survey.join("anna").key
    for _ in range(5):
        survey.answer(key, survey.ask(key).number, 1)
    waiting = survey.ask(key)
    before = lines(survey)
    survey.close()
    with survey.journal.path.open("ab") as file:  # a write that the kill cut off: nobody was told of it
        file.write(b'{"event": "answer", "question": 5, "choice": 0, "time": 0}'[:-cut])
    survey.out.unlink()
    again = open_survey()
    assert lines(again) == before
    assert again.tokens == survey.tokens  # the links that people have go on working
    assert (again.ask(key).number, again.ask(key).shown) == (waiting.number, waiting.shown)
    again.answer(key, waiting.number, 0)
    again.close()
    assert len(lines(open_survey())) == 6


def test_a_journal_of_other_items_is_refused_and_closed(open_survey: OpenSurvey) -> None:
    """The journal stayed open, so that the right items could not be given after the wrong ones."""
    open_survey().close()
    with pytest.raises(ValueError, match="belongs to other items"):
        open_survey(names=["a", "b", "c"])
    assert len(open_survey().items) == 8


WRONG = {  # a fifth line of a journal, or its event of question 0 and what else -> what is said
    "{]": "damaged at line 5",
    "[" * 60_000: "damaged at line 5",
    "5": "damaged at line 5",
    '"answer", "question": 7, "choice": 0, "time": 0, "seconds": 0': "question is 7",
    '"answer", "question": -1, "choice": 0, "time": 0, "seconds": 0': "question is -1",
    '"answer", "question": 0, "choice": 2, "time": 0, "seconds": 0': "choice is 2",
    '"answer", "question": 0, "choice": 0': "'time' is missing",
    '"undo", "question": 0': "question 0 has no answer to undo",
    '"asked", "question": 3, "rater": "KEY", "shown": [], "reason": "", "of": null': "question is 3 of 0 items",
    '"asked", "question": 1, "rater": "x", "shown": [], "reason": "", "of": null': "'x' is missing or unknown",
    '"eaten", "question": 0': "event is 'eaten'",
}


def test_a_journal_that_holds_what_cannot_be_is_refused(open_survey: OpenSurvey) -> None:
    """An unknown question ended in a bare IndexError, and a gap moved every later answer to another question."""
    survey = open_survey()
    key = survey.join("anna").key
    survey.ask(key)
    survey.close()
    whole = survey.journal.path.read_bytes()
    for line, said in WRONG.items():
        event = f'{{"event": {line}}}' if line[0] == '"' else line
        survey.journal.path.write_bytes(whole + event.replace("KEY", key).encode() + b"\n")
        with pytest.raises(ValueError, match=re.escape(said)):
            open_survey()


def test_a_survey_whose_journal_is_missing_is_refused(open_survey: OpenSurvey) -> None:
    """`ask --resume` wrote an empty table over 300 answers."""
    survey = open_survey()
    key = survey.join("anna").key
    for _ in range(5):
        survey.answer(key, survey.ask(key).number, 1)
    survey.close()
    before, journal = survey.out.read_bytes(), survey.journal.path.read_bytes()
    for content in (None, b""):
        survey.journal.path.unlink() if content is None else survey.journal.path.write_bytes(content)
        with pytest.raises(FileNotFoundError, match="put the journal back"):
            open_survey()
        assert survey.out.read_bytes() == before
    survey.journal.path.write_bytes(journal)
    assert len(lines(open_survey())) == 5


@contextmanager
def full_disk(path: Path, room: int) -> Iterator[None]:
    """In the block no file may have more than `room` bytes more than `path` has now: writing more is an OSError."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("room", [0, 20])
def test_a_full_disk_for_a_moment_moves_no_answer(open_survey: OpenSurvey, room: int) -> None:
    """What failed stayed in the write buffer and came later: replay gave every later answer to another question."""
    survey = open_survey()
    key, other = survey.join("anna").key, survey.join("ben").key
    for _ in range(3):
        survey.answer(key, survey.ask(key).number, 0)
    waiting = survey.ask(key)
    with full_disk(survey.journal.path, room):
        with pytest.raises(OSError, match="journal"):
            survey.answer(key, waiting.number, 1)
        with pytest.raises(OSError, match="journal"):
            survey.ask(other)
        assert survey.ask(key) is waiting  # still open
    for _ in range(3):
        survey.answer(other, survey.ask(other).number, 1)
    survey.answer(key, waiting.number, 1)
    before = [(q.number, q.rater, q.shown, q.choice) for q in survey.questions]
    survey.close()
    again = open_survey()
    assert [(q.number, q.rater, q.shown, q.choice) for q in again.questions] == before
    assert len(lines(again)) == 7


def test_a_table_that_could_not_be_written_is_completed_later(open_survey: OpenSurvey) -> None:
    """The journal had the answer; the table was left with half a line, and the next line was glued to it."""
    survey = open_survey()
    key = survey.join("anna").key
    survey.answer(key, survey.ask(key).number, 0)
    question = survey.ask(key)
    with patch.object(survey, "_append", side_effect=OSError("full")):
        survey.answer(key, question.number, 1)
    assert [line["question"] for line in lines(survey)] == ["0"]
    survey.answer(key, survey.ask(key).number, 0)
    assert [line["question"] for line in lines(survey)] == ["0", "1", "2"]
    question = survey.ask(key)
    with patch.object(survey, "_append", side_effect=OSError("full")):
        survey.answer(key, question.number, 1)
    survey.close()
    assert len(lines(survey)) == 4


def test_strangers_and_wrong_choices_are_refused(survey: Survey) -> None:
    key, other = survey.join().key, survey.join().key
    number = survey.ask(key).number
    with pytest.raises(ValueError, match="not known"):
        survey.ask("nobody")
    with pytest.raises(ValueError, match="not one of yours"):
        survey.answer(other, number, 0)
    for choice in (2, -2, "0", None):
        with pytest.raises(ValueError, match="choice is"):
            survey.answer(key, number, choice)  # pyright: ignore[reportArgumentType]


def test_many_raters_at_once_lose_and_double_nothing(survey: Survey) -> None:
    def work(number: int) -> None:
        key = survey.join(f"rater {number}").key
        for _ in range(10):
            survey.answer(key, survey.ask(key).number, number % 2)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = lines(survey)
    assert len(found) == 80
    assert len({line["question"] for line in found}) == 80


def test_each_rater_is_asked_the_same_number_of_catch_questions(open_survey: OpenSurvey) -> None:
    """Before, 54 % of the raters of 20 questions were asked none: each question was one with probability 0.03."""
    catch = ((0, 1, 2), (3, 4, 5))
    plan = Plan(active=False, catch=catch, goal=20, practice=2, max_wrong=0)
    survey, places, asked = open_survey(plan), set(), set()
    keys = [survey.join().key for _ in range(12)]
    for number in range(2 + 20 + 20):
        if number == 9:  # places stay after a restart
            survey.close()
            survey = open_survey(plan)
        for key in keys:
            question = survey.ask(key)
            if number % 5 == 3:  # and after an answer that was undone
                survey.answer(key, question.number, 0)
                question = survey.undo(key)
            survey.answer(key, question.number, int(question.shown[1] > question.shown[2]))
            if question.reason == "catch":
                places.add(number)
                asked.add(frozenset(question.shown))
    for key in keys:
        reasons = [question.reason for question in survey.answers_of(survey.rater(key))]
        assert [reasons[:20].count("catch"), reasons[20:].count("catch")] == [3, 3]
    assert len(places) > 15
    assert min(places) >= 2
    assert asked == {frozenset(one) for one in catch}
    assert [row["n_catch"] for row in state(survey)["raters"]] == [6] * 12


def test_some_random_questions_are_asked_of_several_raters(open_survey: OpenSurvey) -> None:
    settings = Plan(active=False, repeat_share=0, random_share=0.6), [str(number) for number in range(200)]
    survey = open_survey(*settings)
    for name, flip in (("anna", 0), ("ben", 0), ("carl", 1)):
        key = survey.join(name).key
        for _ in range(60):
            question = survey.ask(key)
            _, left, right = question.shown
            survey.answer(key, question.number, int(left > right) ^ flip)
    told = state(survey)
    agree = {row["name"]: row["agree"] for row in told["raters"]}
    assert 0 < agree["anna"] < 1  # with ben always, with carl never
    assert agree["carl"] == 0
    survey.close()
    assert state(open_survey(*settings)) == told


class AtOnce(Executor):
    """A process pool that does its work in this process before `submit` returns."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def submit(self, work, *args):
        done = Future()
        done.set_result(work(*args))
        return done


def test_the_results_hold_the_last_fit_once_nobody_answers_any_more(open_survey: OpenSurvey, monkeypatch) -> None:
    """A fit was taken up by the next question only: 450 answers stood beside the error of the first ten."""
    monkeypatch.setattr(model, "ProcessPoolExecutor", AtOnce)
    monkeypatch.setattr(model, "_GROWTH", 1.0)
    survey = open_survey(Plan(random_share=0.0, repeat_share=0.0, seed=1))
    key = survey.join().key
    for _ in range(12):
        survey.answer(key, survey.ask(key).number, 0)
    assert state(survey)["learned"] == sum(question.is_learned for question in survey.questions) == 12


def test_the_model_never_learns_from_the_random_questions(open_survey: OpenSurvey, monkeypatch) -> None:
    monkeypatch.setattr(model, "ProcessPoolExecutor", AtOnce)
    monkeypatch.setattr(model, "_GROWTH", 2.0)
    survey = open_survey(Plan(random_share=0.3, repeat_share=0.0, seed=1), [str(number) for number in range(12)])
    key = survey.join().key
    X = np.random.default_rng(0).normal(size=(12, 2))
    for _ in range(150):
        question = survey.ask(key)
        near, far = (np.linalg.norm(X[question.shown[0]] - X[item]) for item in question.shown[1:])
        survey.answer(key, question.number, int(near > far))
    assert survey.fitted is not None
    assert survey.fitted.n_answers <= sum(question.is_learned for question in survey.questions)
    assert sum(question.reason == "random" for question in survey.questions) > 25
    assert sum(question.reason == "active" for question in survey.questions) > 25
    told = state(survey)
    _, error, held_out = survey.curve[-1]
    assert error < 0.3, survey.curve
    assert (told["error"], told["held_out"]) == (error, held_out)
    assert told["wrong"] / held_out == pytest.approx(error)
    assert np.array(votes(survey)["places"]).shape == (12, 2)


@each("form", FORMS.values())
def test_an_answer_means_the_same_whichever_side_its_items_are_on(form) -> None:
    rng = np.random.default_rng(0)
    shown = form.random(6, rng)
    for _ in range(10):
        other = form.shuffled(shown, rng)
        assert form.key(other) == form.key(shown)
        assert sorted(form.line(other, 0)) == sorted(shown)
        assert all(len(row) == 4 for row in form.implied(other, 0))


def test_the_odd_one_out_is_further_from_both() -> None:
    assert FORMS["odd-one-out"].implied((5, 6, 7), 1) == [(5, 7, 5, 6), (7, 5, 7, 6)]


@pytest.mark.parametrize("form", ["triplet", "odd-one-out"])
def test_no_tested_question_is_trained_on(open_survey: OpenSurvey, form: str) -> None:
    """Other raters' answers to the questions of the error were trained on."""
    settings = Plan(form=form, repeat_share=0, random_share=0.3, active=False), [str(number) for number in range(12)]
    survey = open_survey(*settings)
    for name in ("anna", "ben", "carl", "dora"):
        key = survey.join(name).key
        for _ in range(60):
            survey.answer(key, survey.ask(key).number, 0)
    trained, tested, _ = survey._job()
    sets = [
        {tuple(sorted(set(row))) + (row[0],) * (form == "triplet") for row in c.indices.tolist()}
        for c in (trained, tested)
    ]
    assert not sets[0] & sets[1]
    assert len(trained) > len(tested) > 20
