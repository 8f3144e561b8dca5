"""Seven paid raters with parameters, two of whom fail the catch questions, and one name twice: tables and bounds."""

import csv
import io
import zipfile
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
from starlette.testclient import TestClient

import nearkin as nk
from nearkin.web.ask import Plan, ask_app, read_study
from nearkin.web.ask.plan import shipped
from tests.covering import each
from tests.web.ask.conftest import OpenSurvey

GOAL, PRACTICE, RATERS = 20, 2, 7
CARELESS = (2, 5)
STUDY = """
consent = "I am of age and take part of my own will."
[[fields]]
name = "age"
number = true
required = true
[[fields]]
name = "eyes"
options = ["brown", "blue"]
"""
PLACES = np.random.default_rng(5).normal(size=(8, 2))
ORDER = np.argsort(np.linalg.norm(PLACES - PLACES[0], axis=1))
CATCH = tuple((0, int(near), int(far)) for near in ORDER[1:3] for far in ORDER[-2:])


def choose(shown: list[int], careless: bool) -> int:
    """By distance in the plane; a careless rater takes the one that is farther."""
    near, far = (np.linalg.norm(PLACES[shown[0]] - PLACES[item]) for item in shown[1:])
    return int(near > far) ^ careless


def play(client: TestClient, number: int) -> dict:
    name = "Maria" if number in (3, 4) else f"p{number}"
    given = {"PROLIFIC_PID": f"id{number}", "STUDY_ID": "s1"}
    sent = {"name": name, "parameters": given, "fields": {"age": str(20 + number), "eyes": "blue"}, "agreed": True}
    key = client.post("/token/api/join", json=sent).json()["key"]
    shown = client.get(f"/token/api/r/{key}/question").json()
    for done in range(PRACTICE + GOAL):
        assert (shown["practice"], shown["finish"]) == (done < PRACTICE, "")
        choice = choose([item["number"] for item in shown["items"]], number in CARELESS)
        answer = {"question": shown["question"], "choice": choice, "seconds": 1.5, "hidden": 0.5 * (done == 5)}
        shown = client.post(f"/token/api/r/{key}/answer", json=answer).json()
        assert shown["answered"] == max(0, done + 1 - PRACTICE)
    return shown


@pytest.mark.usefixtures("no_pictures")
def test_a_crowd(open_survey: OpenSurvey, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    address = "https://platform.example/done?cc=C0DE&who="
    rules = {"max_wrong": 1, "practice": PRACTICE, "max_raters": RATERS - 2, "min_seconds": 0.2, "repeat_share": 0.3}
    rules |= {"active": False, "catch": CATCH, "n_catch": 4, "goal": GOAL, "finish": f"{address}{{PROLIFIC_PID}}"}
    plan = read_study(f"{tmp_path}/study.toml", **rules)
    survey = open_survey(plan)
    survey.tokens = "token", "admin"
    with TestClient(ask_app(survey)) as client:
        for number in range(RATERS):
            ended = play(client, number)
            assert ended["finish"] == f"{address}id{number}"
        # five whose answers count: the survey is full, and those two were replaced
        late = client.post("/token/api/join", json={"agreed": True})
        assert (late.status_code, late.json()["error"]) == (400, shipped("en")["full"])
        told = client.get("/admin/results/state").json()
        archive = zipfile.ZipFile(io.BytesIO(client.get("/admin/results/results.zip").content))

    # the table of raters
    rows = {row["name"]: row for row in told["raters"]}
    assert len(rows) == RATERS
    assert {"Maria", "Maria 2"} <= rows.keys()
    assert {name for name, row in rows.items() if row["left_out"]} == {f"p{number}" for number in CARELESS}
    assert (told["max_wrong"], told["left_out"], told["items"]) == (1, ["p2", "p5"], 8)
    assert all(rows[f"p{number}"]["catch"] == 0 for number in CARELESS)
    assert {row["consistent"] for row in rows.values()} <= {None, 1.0}
    assert told["answers"] == (RATERS - 2) * GOAL

    # the table of answers: neither practice, nor those who are left out
    lines = list(csv.DictReader(survey.out.read_text(encoding="utf-8").splitlines()))
    assert len(lines) == (RATERS - 2) * GOAL
    assert {line["reason"] for line in lines} == {"start", "random", "repeat", "catch"}
    assert {line["rater"] for line in lines} == rows.keys() - {f"p{number}" for number in CARELESS}
    people = {line["rater"]: parse_qs(line["parameters"]) for line in lines}
    assert (people["Maria"]["PROLIFIC_PID"], people["Maria 2"]["PROLIFIC_PID"]) == (["id3"], ["id4"])
    assert {line["hidden"] for line in lines} == {"0.00", "0.50"}
    model = nk.OrdinalEmbedding(2, random_state=0).fit(nk.read_comparisons(survey.out))
    assert model.score(nk.read_comparisons(survey.out)) > 0.9

    # the zip, of which test_results has the rest
    raters = list(csv.DictReader(io.StringIO(archive.read("results/raters.csv").decode())))
    assert {row["name"] for row in raters if row["left_out"] == "True"} == {"p2", "p5"}
    assert {(row["consent"], row["consent_time"][:2], row["n_catch"]) for row in raters} == {
        ("I am of age and take part of my own will.", "20", "4")
    }
    assert archive.read("results/journal.jsonl").decode().count('"consent": "I am of age') == RATERS
    survey.close()
    again = open_survey(plan)
    assert [rater.name for rater in again.raters.values() if again.left_out(rater)] == ["p2", "p5"]
    assert again.is_full()


def test_consent_and_fields_are_asked_of_people_invited_by_name_too(open_survey: OpenSurvey) -> None:
    """`--raters anna` gave links that led past the consent and the instructions. A pilot may do without both."""
    pilot = open_survey(Plan(active=False, words=shipped("en") | {"consent": "", "instructions": ""}))
    pilot.tokens = "token", "admin"
    key = pilot.invited("anna").key
    with TestClient(ask_app(pilot)) as client:
        assert client.get(f"/token/api/r/{key}/question").json()["answered"] == 0
    pilot.close()
    survey = open_survey()
    survey.tokens = "token", "admin"
    with TestClient(ask_app(survey)) as client:
        assert client.get(f"/token/api/r/{key}/question").json() == {"begin": True}
        refused = client.post("/token/api/join", json={"key": key})
        assert (refused.status_code, refused.json()["error"]) == (400, shipped("en")["tick"])
        begun = client.post("/token/api/join", json={"key": key, "agreed": True, "fields": {"age": "40"}})
        assert begun.json() == {"key": key}
        assert client.get(f"/token/api/r/{key}/question").json()["answered"] == 0
        assert client.post("/token/api/join", json={"key": "stranger", "agreed": True}).status_code == 400
    survey.close()
    again = open_survey().raters[key]
    assert (again.name, again.begun, again.fields) == ("anna", True, {"age": "40"})


def test_an_answer_that_came_too_soon_is_refused(open_survey: OpenSurvey) -> None:
    survey = open_survey(Plan(active=False, min_seconds=0.5))
    key = survey.join().key
    number = survey.ask(key).number
    with pytest.raises(ValueError, match=r"seconds is 0\.40; an answer needs at least 0\.5"):
        survey.answer(key, number, 0, 0.4)
    survey.answer(key, number, 0, 0.6)
    assert len(survey.answered()) == 1


def test_practice_ends_where_all_questions_were_asked(open_survey: OpenSurvey) -> None:
    """Three items have three questions: counted by different ones, five of practice never came to an end."""
    survey = open_survey(Plan(active=False, practice=5), ["a", "b", "c"])
    key = survey.join().key
    for _ in range(9):
        survey.answer(key, survey.ask(key).number, 0, 1)
    assert [question.reason == "practice" for question in survey.questions] == [True] * 5 + [False] * 4
    assert len(survey.answered()) == 4


def test_answers_that_are_enough_close_the_survey(open_survey: OpenSurvey) -> None:
    survey = open_survey(Plan(active=False, max_answers=3, practice=1))
    key = survey.join().key
    for _ in range(3):
        survey.answer(key, survey.ask(key).number, 0, 1)
        assert not survey.is_full()  # the first one was practice
    survey.answer(key, survey.ask(key).number, 0, 1)
    assert survey.is_full()


def test_a_rater_comes_back_when_the_wrong_answer_is_undone(open_survey: OpenSurvey) -> None:
    survey = open_survey(
        Plan(active=False, random_share=0, repeat_share=0, catch=CATCH, n_catch=1, goal=1, max_wrong=0)
    )
    key = survey.join("anna").key
    question = survey.ask(key)
    right = choose(list(question.shown), False)
    for choice, lines in ((right, 1), (1 - right, 0), (-1, 0), (right, 1)):
        survey.answer(key, survey.ask(key).number, choice, 1)
        assert survey.out.read_text(encoding="utf-8").count("\n") == 1 + lines, choice
        assert survey.left_out(survey.rater(key)) == (choice == 1 - right)
        assert len(survey.answered(False)) == (choice == 1 - right)
        survey.undo(key)


@each(
    ("given", "said"),
    [
        ({"max_wrong": 1}, "there are no catch questions; give catch too"),
        ({"max_answers": 0}, "max_answers is 0"),
        ({"practice": -1}, "practice is -1"),
        ({"min_seconds": 61}, "min_seconds is 61"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(given: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Plan(**given)
