"""The pages of a survey: the raters' behind one token, the experimenter's, with results, behind another."""

import csv
import json
import math
import os
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from shutil import make_archive
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from nearkin._check import check_output
from nearkin._fields import counted
from nearkin._storage import regular_file
from nearkin._types import Record
from nearkin.jobs import embed_comparisons
from nearkin.web import serving
from nearkin.web.ask.questions import Items, Question, Shown
from nearkin.web.ask.survey import FEWEST_TO_WEIGH, AnswerTable, Plan, Rater, Survey, journal_path, spreadsheet_cell

_NAMED = 20  # raters left out that a sentence names
_SECONDS = 5  # for one question, of which the page informs people before they begin


def result(survey: Survey) -> Record:
    """Counts, the last fit's error with its counts, and who is left out; "summary" and "rule" are these in words."""
    given = [rater for rater in list(survey.raters.values()) if rater.answered]
    out, most = [rater.name for rater in given if survey.left_out(rater)], survey.plan.max_wrong
    rule, text, error, wrong, held_out = "No rater is left out.", "", None, 0, 0
    if most is not None:
        named = f"{', '.join(out[:_NAMED])}{', ...' if len(out) > _NAMED else ''}"
        so_far = f"{len(out)} of {counted(len(given), 'rater')}: {named}" if out else "none"
        rule = f"Left out: raters with more than {counted(most, 'catch question')} answered wrong. So far {so_far}."
    if survey.curve:
        _, error, held_out = survey.curve[-1]
        wrong, asked = round(error * held_out), held_out // len(survey.form.comparisons)
        of = f"{counted(held_out, 'comparison')} of " if asked < held_out else ""
        text = f", triplet error {error:.3f} ({wrong:,} wrong of {of}{counted(asked, 'held-out answer')})"
    n_answers, n_items = len(survey.answered()), len(survey.items)
    by = f"{counted(n_items, 'item')} by {counted(len(given) - len(out), 'rater')}"
    return {
        "items": n_items, "answers": n_answers, "error": error, "wrong": wrong, "held_out": held_out, "left_out": out,
        "rule": rule, "summary": f"{counted(n_answers, 'answer')} on {by}{text}",
    }  # fmt: skip


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
    """A zip: answers.csv, those that do not count (left_out.csv), raters.csv, all that happened without the raters'
    secrets (journal.jsonl), and what `nearkin embed --dim auto` makes of the answers: maps, errors, dimensions."""
    with TemporaryDirectory() as folder:
        root, told = Path(folder, "results"), state(survey)
        root.mkdir()
        for name, counts in (("answers.csv", True), ("left_out.csv", False)):
            AnswerTable(root / name, survey.items, survey.form, survey.raters).rewrite(survey.answered(counts))
        given = (rater for rater in survey.raters.values() if rater.answered)
        raters = [
            row | r.parameters | r.fields | row | {"consent": r.consent, "consent_time": r.consent_time}
            for row, r in zip(told["raters"], given, strict=True)
        ]
        raters = [
            {spreadsheet_cell(name): spreadsheet_cell(v) if isinstance(v, str) else v for name, v in row.items()}
            for row in raters
        ]
        with (root / "raters.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in raters for name in row)))
            writer.writeheader()
            writer.writerows(raters)
        journal = survey.journal.path.read_text(encoding="utf-8").splitlines(keepends=True)
        text = "".join(line for line in journal if '"event": "links"' not in line)
        for key, rater in survey.raters.items():
            text = text.replace(key, json.dumps(rater.name, ensure_ascii=False)[1:-1])
        (root / "journal.jsonl").write_text(text, encoding="utf-8")
        (root / "README.txt").write_text("\n".join(_summary(survey, told, root)) + "\n", encoding="utf-8")
        return Path(make_archive(f"{folder}/results", "zip", folder, "results")).read_bytes()


def _summary(survey: Survey, told: Record, root: Path) -> Iterator[str]:
    """The lines of README.txt in the zip; makes the map of the answers in `root`."""
    yield f"Counted: {told['summary']}."
    yield told["rule"]
    weighed = sum(row["answers"] >= FEWEST_TO_WEIGH for row in told["raters"]) >= 2
    options: Record = {"dim": "auto", "seed": survey.plan.seed, "raters": "estimated" if weighed else "equal"}
    try:
        made = embed_comparisons.embed_comparisons(root / "answers.csv", out=root / "map", **options)
    except ValueError as error:
        yield f"No map: {error}"
        return
    yield from made["notes"]
    curve = made["dimension_curve"]
    for row in zip(curve["dimension"], curve["error"], curve["standard_error"], strict=True):
        yield "dimension {}: error of cross-validation {:.3f}, standard error {:.3f}".format(*row)
    yield f"Coin flips would have an error of {curve['chance']:.3f} or more 19 times of 20."


LANGUAGES = ("de", "en", "es", "fr", "zh")
_FIELD: dict[str, type] = {"name": str, "label": str, "number": bool, "options": list, "required": bool}


@dataclass(frozen=True)
class Texts:
    """Texts of the raters' page, by their keys in web/texts/en.toml, and what raters fill in.

    goal: number of answers of each rater. finish: a completion code, or an address, shown only after these; in an
    address, {name} is replaced by a parameter of the rater. break_every: answers between two breaks.
    """

    words: Mapping[str, str] = field(default_factory=lambda: shipped("en"))
    fields: Sequence[Record] = ()
    goal: int | None = None
    finish: str = ""
    break_every: int | None = None

    def __post_init__(self) -> None:
        if self.finish and self.goal is None:
            raise ValueError("finish is given after the rater's last answer, and goal is None; give goal too")

    def finish_of(self, rater: Rater) -> str:
        """The code or address for a rater."""
        said = self.finish
        for name, value in rater.parameters.items():
            said = said.replace(f"{{{name}}}", quote(value, safe=""))
        return said


def shipped(language: str) -> dict[str, str]:
    """The texts in one of `LANGUAGES`."""
    return tomllib.loads(files("nearkin.web").joinpath("texts", f"{language}.toml").read_text(encoding="utf-8"))


def _is_field(one: object) -> bool:
    return isinstance(one, dict) and "name" in one and all(isinstance(v, _FIELD.get(k, ())) for k, v in one.items())


RULES = ("practice", "min_seconds", "max_answers", "n_catch", "max_wrong", "random_share", "active")  # of `Plan`
_OF_TEXTS = ("break_every",)  # a rule of `Texts`


def read_study(source: str = "en", **settings: Any) -> tuple[Texts, Record]:
    """The texts of a language (de, en, es, fr, zh), or a TOML file's, with the other settings of `Texts`; and rules,
    settings of `Plan`.

    The language `lang` gives the texts that the file lacks; for a language that is not shipped it must have all. Its
    tables [[fields]] are what raters fill in, its table [rules] has some of `RULES` and break_every. ValueError for
    unknown keys, and for what is no text.
    """
    if source in LANGUAGES:
        return Texts(shipped(source), **settings), {}
    try:
        given = tomllib.loads(regular_file(source).read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}; study is a TOML file, or one of {', '.join(LANGUAGES)}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{source} is no TOML in UTF-8 ({error})") from error
    lang, english = given.setdefault("lang", "en"), shipped("en")
    known = shipped(lang) if lang in LANGUAGES else {}
    fields = given.pop("fields", [])
    if not isinstance(fields, list) or not all(map(_is_field, fields)):
        raise ValueError(f"{source} has wrong [[fields]]; each has a name, and may have {', '.join(_FIELD)}")
    rules = given.pop("rules", {})
    if not isinstance(rules, dict) or not rules.keys() <= {*RULES, *_OF_TEXTS}:
        raise ValueError(f"{source} has wrong [rules]; it may have {', '.join((*RULES, *_OF_TEXTS))}")
    settings |= {name: rules.pop(name) for name in _OF_TEXTS if name in rules}
    if wrong := [name for name, text in given.items() if name not in english or not isinstance(text, str)]:
        raise ValueError(
            f"{source} has {wrong[0]} = {given[wrong[0]]!r}; it may have texts called {', '.join(english)}, and fields "
            "and rules"
        )
    words = known | given
    if lacking := english.keys() - words.keys():
        raise ValueError(f"{source} is in {lang!r}, of which nothing is shipped; it lacks {', '.join(sorted(lacking))}")
    return Texts(words, fields, **settings), rules


def shown(survey: Survey, texts: Texts, key: str) -> Record:
    """The record of a rater's open question, or the request to begin first."""
    rater, words = survey.rater(key), texts.words
    if not rater.begun and (words["instructions"] or words["consent"] or texts.fields):
        return {"begin": True}
    asked, answered = survey.ask(key), len(survey.answers_of(rater))
    return {
        "question": asked.number,
        "items": [survey.items.shown(item) for item in asked.shown],
        "practice": asked.reason == "practice",
        "answered": answered,
        "undo": bool(rater.answered),
        "next": [survey.items.shown(item) for item in (rater.planned or ("", (), None))[1]],
        "finish": texts.finish_of(rater) if answered >= (texts.goal or 0) else "",
    }


def joined(survey: Survey, words: Mapping[str, str], body: Record) -> Rater:
    """The rater who begins; ValueError, in the page's language, without consent or where nobody else is needed."""
    wanted = {"name": "", "key": "", "parameters": {}, "fields": {}}
    name, key, given, filled = (body.get(name, default) for name, default in wanted.items())
    if not isinstance(name, str) or not isinstance(key, str):
        raise ValueError("name must be text")
    if not all(isinstance(d, dict) and all(isinstance(text, str) for text in d.values()) for d in (given, filled)):
        raise ValueError("parameters and fields must be dictionaries of texts")
    if not key and survey.is_full():
        raise ValueError(words["full"])
    if words["consent"] and body.get("agreed") is not True:
        raise ValueError(words["tick"])
    return survey.join(name, given, filled, key=key, consent=words["consent"])


def ask_app(survey: Survey, texts: Texts | None = None, host: str = serving.LOCAL) -> Starlette:
    """The application of a survey: raters open `/{tokens[0]}/`, the experimenter `/{tokens[1]}/results/`."""
    texts = texts or Texts()
    about = {name: value for name, value in vars(texts).items() if name != "finish"}
    plan, questions = survey.plan, (texts.goal or 0) + survey.plan.practice
    minutes = math.ceil(questions * max(_SECONDS, plan.min_seconds) / 60)
    about |= {"form": plan.form, "min_seconds": plan.min_seconds, "minutes": minutes}

    def question(request: Request) -> Response:
        return JSONResponse(shown(survey, texts, request.path_params["key"]))

    def answer(request: Request, body: Record) -> Response:
        given = body.get("question"), body.get("choice"), body.get("seconds", 0.0), body.get("hidden", 0.0)
        survey.answer(request.path_params["key"], *given)  # pyright: ignore[reportArgumentType]
        return question(request)

    def undo(request: Request, body: Record) -> Response:
        survey.undo(request.path_params["key"])
        return question(request)

    def media(request: Request) -> Response:
        number, files = request.path_params["number"], survey.items.files
        if number >= len(files) or (file := files[number]) is None:
            raise KeyError(number)
        return FileResponse(file)

    page, rater, experimenter = serving.page("ask.html"), *survey.tokens
    gets = {"": page, "r/{key}": page, "api/r/{key}/question": question, "media/{number:int}": media}
    gets["api/about"] = lambda request: JSONResponse(about)
    posts: dict[str, serving.Post] = {"api/r/{key}/answer": answer, "api/r/{key}/undo": undo}
    posts["api/join"] = lambda request, body: JSONResponse({"key": joined(survey, texts.words, body).key})
    results = {
        "results/": serving.page("results.html"),
        "results/state": lambda request: JSONResponse(state(survey)),
        "results/votes": lambda request: JSONResponse(votes(survey)),
        "results/results.zip": lambda request: Response(results_zip(survey), media_type="application/zip"),
    }
    routes = serving.secret_routes(rater, gets, posts) + serving.secret_routes(experimenter, results)
    return serving.make_app(routes, host)


def collect(
    items: Items,
    out: str | os.PathLike[str],
    plan: Plan | None = None,
    *,
    texts: Texts | None = None,
    raters: Sequence[str] = (),
    resume: bool = False,
    host: str = serving.LOCAL,
    port: int = 8765,
    announce: Callable[[Record], None],
) -> Record:
    """Serve the page until Ctrl-C or SIGTERM; returns the files, the numbers of items, answers and raters, the error on
    held-out answers with its counts, and who is left out by which rule.

    Once the page is there, `announce` is called with the same and the links, which are secrets and stay the same when a
    survey is resumed. FileExistsError if `out` or its journal exists and `resume` is False.
    """
    out, texts, plan = check_output(out), texts or Texts(), plan or Plan()
    plan = replace(plan, goal=plan.goal or texts.goal)
    old = [path for path in (out, journal_path(out)) if path.exists()]
    if old and not resume:
        raise FileExistsError(f"{old[0]} exists; resume=True goes on with it, or give another name")
    with (
        serving.listening(host, port) as at,
        closing(Survey(items, plan, out)) as survey,
        serving.until_stopped(),
    ):
        page, results = (f"http://{host}:{at.getsockname()[1]}/{token}" for token in survey.tokens)
        named = {name: f"{page}/r/{survey.invited(name).key}" for name in raters}
        links = {"raters": f"{page}/", "results": f"{results}/results/", "named": named}
        announce(_counts(survey) | {"links": links})
        serving.run(ask_app(survey, texts, host), at)
    return _counts(survey)


def _counts(survey: Survey) -> Record:
    files = {"out": str(survey.out), "journal": str(survey.journal.path)}
    return files | result(survey) | {"raters": len(survey.raters)}
