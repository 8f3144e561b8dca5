"""The pages of a survey: the raters' behind one token, the experimenter's, with results, behind another."""

import io
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from statistics import median
from zipfile import ZIP_DEFLATED, ZipFile

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from nearkin._fields import Record
from nearkin.jobs import outputs
from nearkin.web import serving
from nearkin.web.ask.journal import journal_path
from nearkin.web.ask.plan import Plan
from nearkin.web.ask.questions import Items, Question, Shown
from nearkin.web.ask.survey import Rater, Survey, as_csv, spreadsheet_cell

_SECONDS = 5  # for one question, of which the page informs people before they begin
_ANSWER = {"question": None, "choice": None, "seconds": 0.0, "hidden": 0.0}  # what is sent, and what is not


def result(survey: Survey) -> Record:
    """Counts, the last fit's error on held-out comparisons with their counts, and the raters who are left out because
    they answered more than `max_wrong` catch questions wrong."""
    _, error, held_out = survey.curve[-1] if survey.curve else (0, None, 0)
    return {
        "items": len(survey.items),
        "answers": len(survey.answered()),
        "raters": len(survey.raters),
        "error": error,
        "wrong": None if error is None else round(error * held_out),
        "held_out": held_out,
        "left_out": [rater.name for rater in list(survey.raters.values()) if survey.left_out(rater)],
        "max_wrong": survey.plan.max_wrong,
    }


def state(survey: Survey) -> Record:
    """State of the results page: `result`, the curve of the error, and the raters."""
    survey.learn()
    votes: dict[Shown, dict[str, Question]] = defaultdict(dict)  # of each question, each rater's last answer
    for question in survey.comparing():
        votes[survey.form.key(question.shown)][question.rater] = question
    fitted = survey.fitted
    weights = fitted.weights if fitted else {}
    return result(survey) | {
        "curve": [(n, error, held_out // len(survey.form.comparisons)) for n, error, held_out in survey.curve],
        "learned": fitted.n_answers if fitted else 0,
        "failure": survey.learner.failure,
        "raters": [
            _rater_row(survey, rater, votes) | {"weight": weights.get(number)}
            for number, rater in enumerate(list(survey.raters.values()))
            if rater.answered
        ],
    }


def votes(survey: Survey) -> Record:
    """The data that the page draws and lists: answers, as rater number and items, and the map."""
    number_of, form, fitted = {key: n for n, key in enumerate(survey.raters)}, survey.form, survey.fitted
    answers = [[number_of[q.rater], *form.line(q.shown, q.choice or 0)] for q in survey.comparing()]
    shape = {"form": form.name, "comparisons": form.comparisons, "chosen": form.chosen}
    places = None if fitted is None else fitted.embedding.tolist()
    return shape | {"names": survey.items.ids, "answers": answers, "places": places}


def _rater_row(survey: Survey, rater: Rater, votes: Mapping[Shown, Mapping[str, Question]]) -> Record:
    """Counts of a rater. consistent: the share of repeated questions answered the same; catch: of the `n_catch` catch
    questions answered right; agree: of other raters' votes on the same questions that are the same."""
    form, answers = survey.form, survey.answers_of(rater)
    given = [q for q in answers if q.choice != -1]
    repeats = [(q, survey.questions[q.of]) for q in given if q.of is not None]
    others = [(q, vote) for q in given for key, vote in votes.get(form.key(q.shown), {}).items() if key != rater.key]
    return {
        "name": rater.name,
        "answers": len(answers),
        "cannot_say": _share([q.choice == -1 for q in answers]),
        "seconds": median([q.seconds for q in answers] or [0.0]),
        "consistent": _share([form.answer(q) == form.answer(old) for q, old in repeats]),
        "n_catch": sum(q.reason == "catch" for q in answers),
        "catch": _share([survey.is_right(q) for q in given if q.reason == "catch"]),
        "agree": _share([form.answer(q) == form.answer(vote) for q, vote in others]),
        "left_out": survey.left_out(rater),
    }


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def results_zip(survey: Survey) -> bytes:
    """A zip: answers.csv, those that do not count (left_out.csv), raters.csv, and all that happened without the raters'
    secrets (journal.jsonl)."""
    given = (rater for rater in survey.raters.values() if rater.answered)
    rows = [
        row | rater.parameters | rater.fields | row | {"consent": rater.consent, "consent_time": rater.consent_time}
        for row, rater in zip(state(survey)["raters"], given, strict=True)
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = [names, *([row.get(name, "") for name in names] for row in rows)]
    raters = as_csv([spreadsheet_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in table)
    journal = survey.journal.path.read_text(encoding="utf-8").splitlines(keepends=True)
    happened = "".join(line for line in journal if '"event": "links"' not in line)
    for key, rater in survey.raters.items():
        happened = happened.replace(key, json.dumps(rater.name, ensure_ascii=False)[1:-1])
    content = io.BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        archive.writestr("results/answers.csv", survey.table(survey.answered()))
        archive.writestr("results/left_out.csv", survey.table(survey.answered(False)))
        archive.writestr("results/raters.csv", raters)
        archive.writestr("results/journal.jsonl", happened)
    return content.getvalue()


def shown(survey: Survey, key: str) -> Record:
    """The record of a rater's open question, or the request to begin first."""
    rater, plan = survey.rater(key), survey.plan
    if not rater.begun and (plan.words["instructions"] or plan.words["consent"] or plan.fields):
        return {"begin": True}
    asked, answered = survey.ask(key), len(survey.answers_of(rater))
    return {
        "question": asked.number,
        "items": [survey.items.shown(item) for item in asked.shown],
        "practice": asked.reason == "practice",
        "answered": answered,
        "undo": bool(rater.answered),
        "next": [survey.items.shown(item) for item in (rater.planned or ("", (), None))[1]],
        "finish": plan.finish_of(rater.parameters) if answered >= (plan.goal or 0) else "",
    }


def joined(survey: Survey, body: Record) -> Record:
    """The key of a rater who begins; ValueError, in the page's language, without consent or where nobody else is
    needed."""
    words = survey.plan.words
    name, key = body.get("name", ""), body.get("key", "")
    parameters, fields = body.get("parameters", {}), body.get("fields", {})
    if not isinstance(name, str) or not isinstance(key, str):
        raise ValueError("name must be text")
    if not all(isinstance(d, dict) and all(isinstance(text, str) for text in d.values()) for d in (parameters, fields)):
        raise ValueError("parameters and fields must be dictionaries of texts")
    if not key and survey.is_full():
        raise ValueError(words["full"])
    if words["consent"] and body.get("agreed") is not True:
        raise ValueError(words["tick"])
    return {"key": survey.join(name, parameters, fields, key=key, consent=words["consent"]).key}


def about(plan: Plan) -> Record:
    """What the raters' page loads first."""
    names = "form", "words", "fields", "goal", "break_every", "min_seconds"
    seconds = ((plan.goal or 0) + plan.practice) * max(_SECONDS, plan.min_seconds)
    return {name: getattr(plan, name) for name in names} | {"minutes": math.ceil(seconds / 60)}


def ask_app(survey: Survey, host: str = serving.LOCAL) -> Starlette:
    """The application of a survey: raters open `/{tokens[0]}/`, the experimenter `/{tokens[1]}/results/`."""

    def question(request: Request) -> Record:
        return shown(survey, request.path_params["key"])

    def answer(request: Request, body: Record) -> Record:
        sent = [body.get(name, default) for name, default in _ANSWER.items()]
        survey.answer(request.path_params["key"], *sent)
        return question(request)

    def undo(request: Request, body: Record) -> Record:
        survey.undo(request.path_params["key"])
        return question(request)

    def media(request: Request) -> Response:
        file = dict(enumerate(survey.items.files)).get(request.path_params["number"])
        if file is None:
            raise KeyError("media")
        return FileResponse(file)

    page, rater, experimenter = serving.page("ask.html"), *survey.tokens
    gets: dict[str, serving.Get] = {
        "": page,
        "r/{key}": page,
        "api/about": lambda request: about(survey.plan),
        "api/r/{key}/question": question,
        "media/{number:int}": media,
    }
    posts: dict[str, serving.Post] = {
        "api/join": lambda request, body: joined(survey, body),
        "api/r/{key}/answer": answer,
        "api/r/{key}/undo": undo,
    }
    results: dict[str, serving.Get] = {
        "results/": serving.page("results.html"),
        "results/state": lambda request: state(survey),
        "results/votes": lambda request: votes(survey),
        "results/results.zip": lambda request: Response(results_zip(survey), media_type="application/zip"),
    }
    routes = serving.secret_routes(rater, gets, posts) + serving.secret_routes(experimenter, results)
    return serving.make_app(routes, host)


def collect(
    items: Items,
    out: str | os.PathLike[str],
    plan: Plan | None = None,
    *,
    names: Sequence[str] = (),
    resume: bool = False,
    host: str = serving.LOCAL,
    port: int = 8765,
    announce: Callable[[Record], None],
) -> Record:
    """Serve the page until Ctrl-C or SIGTERM; returns the files, the numbers of items, answers and raters, the error on
    held-out answers with its counts, and who is left out.

    Once the page is there, `announce` is called with the same and the links, one for each of the `names` of raters;
    they are secrets and stay the same when a survey is resumed. FileExistsError if `out` or its journal exists and
    `resume` is False.
    """
    out = outputs.check_ending(out, (".csv",))
    old = [path for path in (out, journal_path(out)) if path.exists()]
    if old and not resume:
        raise FileExistsError(f"{old[0]} exists; resume=True goes on with it, or give another name")
    with serving.listening(host, port) as at, closing(Survey(items, plan or Plan(), out)) as survey:
        page, results = (f"http://{host}:{at.getsockname()[1]}/{token}" for token in survey.tokens)
        named = {name: f"{page}/r/{survey.invited(name).key}" for name in names}
        files = {"out": str(out), "journal": str(survey.journal.path)}
        links = {"raters": f"{page}/", "results": f"{results}/results/", "named": named}
        serving.run(ask_app(survey, host), at, announce, files | result(survey) | {"links": links})
    return files | result(survey)
