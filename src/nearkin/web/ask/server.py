"""The pages of a survey: the raters' behind one token, the experimenter's, with results, behind another."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from nearkin._storage import regular_file
from nearkin._types import Record
from nearkin.metrics.ordinal import satisfied
from nearkin.plots import new_axes, plot_error, plot_map
from nearkin.plots.style import FAINT, to_png
from nearkin.records import Comparisons
from nearkin.web import serving
from nearkin.web.ask.questions import Form, Items, Question, Shown
from nearkin.web.ask.survey import Plan, Rater, Survey, journal_path

Votes = Mapping[Shown, Mapping[str, Question]]
"""For each question that was answered, each rater's last answer: one vote a rater."""

_ROWS = 10  # of a table
_FEWEST = 4  # answers about a pair before its share is shown


def state(survey: Survey) -> Record:
    """What the page shows: counts, the error on answers held out, raters, and where answers disagree."""
    votes, fitted, names = votes_by_question(survey.form, survey.comparing()), survey.fitted, survey.items.ids
    weights = fitted.weights if fitted else {}
    return {
        "answers": len(survey.answered()),
        "items": len(survey.items),
        "error": survey.curve[-1][1] if survey.curve else None,
        "learned": fitted.n_answers if fitted else 0,
        "failure": survey.learner.failure,
        "raters": [
            _rater_row(survey, rater, votes) | {"weight": weights.get(number)}
            for number, rater in enumerate(survey.raters.values())
            if rater.answered
        ],
        "questions": split_questions(survey.form, votes, names),
        "pairs": pairs_against_map(survey.form, votes, fitted.embedding, names) if fitted else [],
    }


def votes_by_question(form: Form, answered: Sequence[Question]) -> Votes:
    """The votes in answers, given in the order in which they were asked."""
    votes: dict[Shown, dict[str, Question]] = defaultdict(dict)
    for question in answered:
        votes[form.key(question.shown)][question.rater] = question
    return votes


def split_questions(form: Form, votes: Votes, names: Sequence[str]) -> list[Record]:
    """The questions on which raters differ most: the items, and how many chose what."""
    rows: list[tuple[int, float, Shown, list[tuple[Shown, int]]]] = []
    for key, given in votes.items():
        counts = Counter(map(form.answer, given.values())).most_common()
        against = len(given) - counts[0][1]
        if against:
            rows.append((-against, -against / len(given), key, counts))
    return [
        {
            "items": [names[item] for item in key],
            "chosen": [[" and ".join(names[item] for item in chosen), n] for chosen, n in counts],
        }
        for _, _, key, counts in sorted(rows)[:_ROWS]
    ]


def pairs_against_map(form: Form, votes: Votes, embedding: np.ndarray, names: Sequence[str]) -> list[Record]:
    """The pairs of items whose votes contradict the map (n, p) most, beyond the share of all votes that do."""
    rows = form.all_comparisons(question for given in votes.values() for question in given.values())
    if not len(rows):
        return []
    wrong = ~satisfied(embedding, Comparisons(rows, np.arange(len(embedding))))
    found, number = np.unique(np.sort(rows.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    total = np.bincount(number.reshape(-1))
    against = np.bincount(number.reshape(-1), np.repeat(wrong, 2))
    excess = np.where(total >= _FEWEST, against - wrong.mean() * total, 0.0)
    return [
        {
            "items": [names[item] for item in found[pair]],
            "answers": int(total[pair]),
            "against": float(against[pair] / total[pair]),
        }
        for pair in np.argsort(-excess, kind="stable")[:_ROWS]
        if excess[pair] > 0
    ]


def _rater_row(survey: Survey, rater: Rater, votes: Votes) -> Record:
    """Counts of a rater. consistent: the share of repeated questions answered the same; catch: of catch questions
    answered right; agree: of other raters' votes on the same questions that are the same."""
    form, answers = survey.form, [survey.questions[number] for number in rater.answered]
    given = [q for q in answers if q.choice != -1]
    repeats = [(q, survey.questions[q.of]) for q in given if q.of is not None]
    others = [(q, vote) for q in given for key, vote in votes[form.key(q.shown)].items() if key != rater.key]
    return {
        "name": rater.name,
        "answers": len(answers),
        "cannot_say": _share([q.choice == -1 for q in answers]),
        "seconds": median(q.seconds for q in answers),
        "consistent": _share([form.answer(q) == form.answer(old) for q, old in repeats]),
        "catch": _share([form.line(q.shown, q.choice or 0) in survey.plan.catch for q in given if q.reason == "catch"]),
        "agree": _share([form.answer(q) == form.answer(vote) for q, vote in others]),
    }


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def map_png(survey: Survey, dark: bool = False) -> bytes:
    """The items where the model has them now."""
    if survey.fitted is None:
        return _empty(4.8, "the map appears after the first answers", dark)
    return to_png(
        plot_map(survey.fitted.embedding, [name[:24] for name in survey.items.ids], ax=new_axes(6.4, 4.8)), dark
    )


def curve_png(survey: Survey, dark: bool = False) -> bytes:
    """The share of held-out answers (drawn at random, never learned from) that the model gets wrong."""
    if not survey.curve:
        return _empty(3.2, "the error appears with the first random questions", dark)
    curve, label = {"error": {float(n): error for n, error in survey.curve}}, "error on held-out answers"
    return to_png(plot_error(curve, "answers learned from", new_axes(6.4, 3.2), ylabel=label), dark)


def _empty(height: float, text: str, dark: bool) -> bytes:
    ax = new_axes(6.4, height)
    ax.text(0.5, 0.5, text, ha="center", color=FAINT)
    ax.set_axis_off()
    return to_png(ax, dark)


@dataclass(frozen=True)
class Texts:
    """Texts of the raters' page: its title, instructions, and what raters agree to.

    finish: a completion code, or an address, that a rater gets after `goal` answers and nobody before.
    """

    title: str = ""
    instructions: str = ""
    consent: str = ""
    goal: int | None = None  # answers that each rater is asked for
    finish: str = ""

    def __post_init__(self) -> None:
        if self.finish and self.goal is None:
            raise ValueError("finish is given after the rater's last answer, and goal is None; give goal too")


def ask_app(survey: Survey, texts: Texts | None = None, host: str = serving.LOCAL) -> Starlette:
    """The application of a survey: raters open `/{tokens[0]}/`, the experimenter `/{tokens[1]}/results/`."""

    texts = texts or Texts()

    def about(request: Request) -> Response:
        shown, form = {name: text for name, text in vars(texts).items() if name != "finish"}, survey.form
        return JSONResponse(shown | {"title": shown["title"] or form.title, "question": form.title, "form": form.name})

    def join(request: Request, body: Record) -> Response:
        name, given = body.get("name", ""), body.get("parameters", {})
        if not isinstance(name, str):
            raise ValueError("name must be text")
        if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
            raise ValueError("parameters must be a dictionary of texts")
        return JSONResponse({"key": survey.join(name, given).key})

    def question(request: Request) -> Response:
        key = request.path_params["key"]
        asked = survey.ask(key)
        items, answered = [survey.items.shown(item) for item in asked.shown], len(survey.rater(key).answered)
        finish = texts.finish if answered >= (texts.goal or 0) else ""
        return JSONResponse({"question": asked.number, "items": items, "answered": answered, "finish": finish})

    def answer(request: Request, body: Record) -> Response:
        given = body.get("question"), body.get("choice"), body.get("seconds", 0.0)
        survey.answer(request.path_params["key"], *given)  # pyright: ignore[reportArgumentType]
        return question(request)

    def undo(request: Request, body: Record) -> Response:
        survey.undo(request.path_params["key"])
        return question(request)

    def media(request: Request) -> Response:
        number, files = request.path_params["number"], survey.items.files
        if number >= len(files) or (file := files[number]) is None:
            raise HTTPException(404, "not found")
        return FileResponse(file)

    def picture(request: Request) -> Response:
        draw = {"map": map_png, "curve": curve_png}.get(request.path_params["picture"])
        if draw is None:
            raise HTTPException(404, "not found")
        return Response(draw(survey, "dark" in request.query_params), media_type="image/png")

    page, rater, experimenter = serving.page("ask.html"), *survey.tokens
    gets = {"": page, "r/{key}": page, "api/about": about, "api/r/{key}/question": question}
    gets["media/{number:int}"] = media
    posts = {"api/join": join, "api/r/{key}/answer": answer, "api/r/{key}/undo": undo}
    results = {
        "results/": serving.page("results.html"),
        "results/state": lambda request: JSONResponse(state(survey)),
        "results/{picture}.png": picture,
    }
    routes = serving.secret_routes(rater, gets, posts) + serving.secret_routes(experimenter, results)
    return serving.make_app(routes, host)


def collect(
    items: Items,
    out: str | os.PathLike,
    plan: Plan | None = None,
    *,
    texts: Texts | None = None,
    raters: Sequence[str] = (),
    resume: bool = False,
    host: str = serving.LOCAL,
    port: int = 8765,
    announce: Callable[[Record], None],
) -> Record:
    """Serve the page until Ctrl-C or SIGTERM; returns the files and the numbers of items, answers and raters.

    Once the page is there, `announce` is called with the same and the links, which are secrets and stay the same when a
    survey is resumed. FileExistsError if `out` or its journal exists and `resume` is False.
    """
    out = Path(out)
    old = [path for path in (out, journal_path(out)) if path.exists()]
    if old and not resume:
        raise FileExistsError(f"{old[0]} exists; --resume goes on with it, or give another --out")
    with (
        serving.listening(host, port) as at,
        closing(Survey(items, plan or Plan(), out)) as survey,
        serving.until_stopped(),
    ):
        page, results = (f"http://{host}:{at.getsockname()[1]}/{token}" for token in survey.tokens)
        named = {name: f"{page}/r/{survey.invited(name).key}" for name in raters}
        links = {"raters": f"{page}/", "results": f"{results}/results/", "named": named}
        announce(_counts(survey) | {"links": links})
        serving.run(ask_app(survey, texts, host), at)
    return _counts(survey)


def _counts(survey: Survey) -> Record:
    counts = {"items": len(survey.items), "answers": len(survey.answered()), "raters": len(survey.raters)}
    return {"out": str(survey.out), "journal": str(survey.journal.path), **counts}


def read_text(path: str | os.PathLike) -> str:
    """A text file in UTF-8; ValueError for other bytes."""
    try:
        return regular_file(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
