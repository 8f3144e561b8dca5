"""A survey keeps every answer that it acknowledged, asks each question once, and takes back what is undone."""

import csv
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from nearkin.web.ask import Plan, Survey
from nearkin.web.ask.items import Items, named_items
from nearkin.web.ask.questions import FORMS
from nearkin.web.ask.results import curve_png, map_png, state

NAMES = [f"item {number}" for number in range(8)]
PASSIVE = Plan(active=False, repeat_share=0.0)


def make(path: Path, plan: Plan = PASSIVE, names: list[str] = NAMES) -> Survey:
    return Survey(named_items(names), plan, path / "answers.csv")


def lines(survey: Survey) -> list[dict[str, str]]:
    with survey.out.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def survey(tmp_path: Path):
    made = make(tmp_path)
    yield made
    made.close()


def test_an_answer_is_a_line_of_the_table(survey: Survey) -> None:
    key = survey.join("anna").key
    question = survey.ask(key)
    anchor, left, right = (NAMES[item] for item in question.shown)
    survey.answer(key, question.number, 1, seconds=2.5)
    (line,) = lines(survey)
    assert (line["anchor"], line["near"], line["far"]) == (anchor, right, left)
    assert (line["rater"], line["seconds"], line["question"]) == ("anna", "2.50", "0")
    assert line["shown"] == f"{anchor} | {left} | {right}"


def test_an_open_question_is_shown_again_until_it_is_answered(survey: Survey) -> None:
    key = survey.join().key
    first = survey.ask(key)
    assert survey.ask(key).number == first.number
    survey.answer(key, first.number, 0)
    assert survey.ask(key).number != first.number


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
def test_a_survey_that_was_killed_goes_on_where_it_stood(tmp_path: Path, cut: int) -> None:
    survey = make(tmp_path)
    key = survey.join("anna").key
    for _ in range(5):
        survey.answer(key, survey.ask(key).number, 1)
    waiting = survey.ask(key)
    before = lines(survey)
    survey.close()
    with survey.journal.path.open("ab") as file:  # a write that the kill cut off: nobody was told of it
        file.write(b'{"event": "answer", "question": 5, "choice": 0, "time": 0}'[:-cut])
    survey.out.unlink()
    again = make(tmp_path)
    assert lines(again) == before
    assert again.tokens == survey.tokens  # the links that people have go on working
    assert (again.ask(key).number, again.ask(key).shown) == (waiting.number, waiting.shown)
    again.answer(key, waiting.number, 0)
    again.close()
    third = make(tmp_path)
    assert len(lines(third)) == 6
    third.close()


def test_a_journal_of_other_items_is_refused(tmp_path: Path) -> None:
    make(tmp_path).close()
    with pytest.raises(ValueError, match="belongs to other items"):
        make(tmp_path, names=["a", "b", "c"])


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    make(tmp_path).close()
    path = tmp_path / "answers.csv.journal"
    path.write_bytes(b"{]\n" + path.read_bytes())
    with pytest.raises(ValueError, match="is damaged"):
        make(tmp_path)


def test_strangers_and_wrong_choices_are_refused(survey: Survey) -> None:
    key, other = survey.join().key, survey.join().key
    number = survey.ask(key).number
    with pytest.raises(ValueError, match="not known"):
        survey.ask("nobody")
    with pytest.raises(ValueError, match="somebody else"):
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


def test_repeats_catch_questions_and_agreement_are_counted(tmp_path: Path) -> None:
    plan = Plan(active=False, random_share=0.2, repeat_share=0.4, catch=((0, 1, 2), (3, 4, 5)), catch_share=0.3, seed=3)
    survey = make(tmp_path, plan)
    key = survey.join("anna").key
    for _ in range(80):
        question = survey.ask(key)
        _, left, right = question.shown
        survey.answer(key, question.number, int(left > right))  # always the lower number: right in both catches
    reasons = {question.reason for question in survey.questions}
    assert {"repeat", "catch", "random"} <= reasons
    (row,) = state(survey)["raters"]
    assert row["consistent"] == 1.0
    assert row["catch"] == 1.0
    survey.close()


def test_some_random_questions_are_asked_of_several_raters(tmp_path: Path) -> None:
    survey = make(tmp_path, Plan(active=False, repeat_share=0, seed=1), [str(number) for number in range(200)])
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
    assert told["questions"]
    survey.close()
    again = make(tmp_path, Plan(active=False, repeat_share=0, seed=1), [str(number) for number in range(200)])
    assert state(again) == told
    again.close()


def test_the_model_learns_in_the_background_and_never_from_the_random_questions(tmp_path: Path) -> None:
    survey = make(tmp_path, Plan(random_share=0.3, repeat_share=0.0, seed=1), [str(number) for number in range(20)])
    key = survey.join().key
    X = np.random.default_rng(0).normal(size=(20, 2))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # the first fit waits for its process to start
        question = survey.ask(key)
        anchor, left, right = question.shown
        survey.answer(
            key, question.number, int(np.linalg.norm(X[anchor] - X[left]) > np.linalg.norm(X[anchor] - X[right]))
        )
        if survey.curve and survey.curve[-1][1] < 0.3 and any(q.reason == "active" for q in survey.questions):
            break
        time.sleep(0.02 if len(survey.questions) > 60 else 0)
    assert survey.fitted is not None
    learned = sum(question.teaches for question in survey.questions)
    held = sum(question.reason == "random" and question.choice is not None for question in survey.questions)
    assert survey.fitted.n_answers <= learned
    assert held > 5
    assert survey.curve[-1][1] < 0.3, survey.curve
    assert any(question.reason == "active" for question in survey.questions)
    for dark in (False, True):
        assert map_png(survey, dark).startswith(b"\x89PNG")
        assert curve_png(survey, dark).startswith(b"\x89PNG")
    survey.close()


@pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.name)
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


def test_items_need_names_of_their_own() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        named_items(["a", "b"])
    with pytest.raises(ValueError, match="repeat the name 'a'"):
        Items(["a", "b", "a"], ["", "", ""], [None] * 3, [None] * 3)
