"""Where answers disagree, over one question and with the map; and the zip of everything."""

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from nearkin._types import Record
from nearkin.web.ask import Plan, ask_app
from nearkin.web.ask.questions import FORMS
from nearkin.web.ask.server import results_zip, votes
from tests.web.ask.conftest import OpenSurvey
from tests.web.browser import complaints, served, wait_until

NAMES = ["a", "b", "c", "d"]
Call = Callable[[str, Record], list[Record]]


@pytest.fixture
def call(browser: Any, open_survey: OpenSurvey) -> Iterator[Call]:
    """A function of the results page, by its name."""
    survey = open_survey(names=NAMES)
    with served(ask_app(survey)) as address:
        browser.get(f"{address}/{survey.tokens[1]}/results/")
        yield lambda name, told: browser.execute_script(f"return {name}(arguments[0])", told)


def answered(form: str, *given: tuple[int, tuple[int, ...], int], places: list | None = None) -> Record:
    """What the page is sent of answers (rater, items shown, choice)."""
    kind = FORMS[form]
    lines = [[rater, *kind.line(shown, choice)] for rater, shown, choice in given]
    shape = {"form": form, "comparisons": kind.comparisons, "chosen": kind.chosen}
    return shape | {"names": NAMES, "answers": lines, "places": places}


def test_a_question_that_people_answer_differently_is_named_with_its_counts(call: Call) -> None:
    given = (1, (0, 1, 2), 0), (2, (0, 2, 1), 1), (3, (0, 1, 2), 1), (1, (0, 1, 3), 0), (2, (0, 1, 3), 0)
    (row,) = call("split_questions", answered("triplet", *given))
    assert (row["items"], row["chosen"]) == (["a", "b", "c"], [["b", 2], ["c", 1]])


def test_one_person_who_answers_twice_is_no_disagreement(call: Call) -> None:
    """Two answers of one person were listed among the questions that people answer differently."""
    given = (1, (0, 1, 2), 0), (1, (0, 2, 1), 0), (2, (0, 1, 2), 1)
    assert call("split_questions", answered("triplet", *given)) == []
    (row,) = call("split_questions", answered("triplet", *given, (3, (0, 1, 2), 0)))
    assert row["chosen"] == [["c", 2], ["b", 1]]  # the last answer of rater 1


@pytest.mark.parametrize("form", FORMS)
def test_the_page_and_the_survey_agree_on_what_is_one_question(call: Call, form: str) -> None:
    rng, kind = np.random.default_rng(0), FORMS[form]
    lines, keys = [], []
    for _ in range(40):
        shown = kind.random(4, rng)
        lines.append([int(i) for i in kind.line(shown, int(rng.integers(len(kind.lines))))])
        keys.append(kind.key(shown))
    found = call(f"((lines) => lines.map((line) => key_of('{form}', line)))", lines)  # type: ignore[arg-type]
    assert len(set(found)) == len(set(keys)) > 2
    assert len({*zip(found, keys, strict=True)}) == len(set(keys))


def test_the_pair_that_the_map_places_otherwise_comes_first(call: Call) -> None:
    shown = (0, 1, 3), (1, 0, 3), (2, 1, 3), (0, 2, 3)
    right = [(rater, items, 0) for rater in (1, 2, 3) for items in shown]
    wrong = [(rater, (0, 1, 2), 1) for rater in (4, 5, 1, 2, 3)]

    def pairs(*given: tuple[int, tuple[int, ...], int]) -> list[Record]:
        found = call("pairs_against_map", answered("triplet", *given, places=[[0], [1], [3], [7]]))
        return [{name: pair[name] for name in ("items", "answers", "against")} for pair in found]

    found = pairs(*right, *wrong)
    assert found[0] == {"items": ["a", "c"], "answers": 8, "against": 5 / 8}
    assert pairs() == []
    assert pairs(*right, *wrong, *wrong) == found  # one vote a rater


def test_the_page_draws_a_map_and_a_curve_and_hostile_names_stay_text(browser: Any, open_survey: OpenSurvey) -> None:
    names = ['<img src=x onerror="document.title=1">', *(f"thing {n}" for n in range(1, 9))]
    survey = open_survey(names=names)
    told = json.loads(json.dumps(votes(survey))) | {"places": np.random.default_rng(0).normal(size=(9, 2)).tolist()}
    with served(ask_app(survey)) as address:
        browser.get(f"{address}/{survey.tokens[1]}/results/")
        wait_until(lambda: browser.execute_script("return seen !== ''"))
        assert browser.execute_script("return $('map').textContent") == "the map appears after the first answers"
        browser.execute_script("draw_map(arguments[0]); draw_curve([[10, 0.4, 20], [20, 0.25, 40]])", told)
        titles = browser.execute_script("return [...$('map').querySelectorAll('circle')].map((one) => one.textContent)")
        assert titles == names
        assert browser.execute_script("return $('curve').querySelectorAll('circle').length") == 2
        low, high = browser.execute_script("return interval(0.4, 20)")
        assert (low, high) == pytest.approx((0.2188, 0.6134), abs=1e-4)  # of Wilson's formula
        assert browser.execute_script("return document.querySelectorAll('img').length") == 0
        assert not browser.execute_script("return document.title").isdigit()
        assert not complaints(browser)


def unzipped(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name).decode("latin-1") for name in archive.namelist() if not name.endswith("/")}


def test_the_zip_holds_everything_but_the_secrets(open_survey: OpenSurvey) -> None:
    """Answers, those left out, raters and journal."""
    survey = open_survey(Plan(active=False, repeat_share=0, random_share=0.4, practice=2))
    X = np.random.default_rng(0).normal(size=(8, 2))
    for number in range(3):
        key = survey.join("anna", {"PROLIFIC_PID": f"p{number}", "name": "not anna"}, {"age": "40"}).key
        for _ in range(42):
            question = survey.ask(key)
            near, far = (np.linalg.norm(X[question.shown[0]] - X[item]) for item in question.shown[1:])
            survey.answer(key, question.number, int(near > far), 1.5)
    found = unzipped(results_zip(survey))
    assert found["results/answers.csv"].count("\n") == 121
    assert found["results/left_out.csv"].count("practice") == 6
    raters = list(csv.DictReader(io.StringIO(found["results/raters.csv"])))
    assert [(r["name"], r["PROLIFIC_PID"], r["age"], r["answers"]) for r in raters] == [
        ("anna", "p0", "40", "40"),
        ("anna 2", "p1", "40", "40"),
        ("anna 3", "p2", "40", "40"),
    ]
    for secret in (*survey.raters, *survey.tokens):
        assert not any(secret in text for text in found.values())
    assert found["results/journal.jsonl"].count('"event": "answer"') == 126
