"""The pages of a survey: the raters' behind one token, the experimenter's behind another, until the server stops."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from nearkin._storage import regular_file
from nearkin._types import Record
from nearkin.web import serving
from nearkin.web.ask.questions import Items
from nearkin.web.ask.results import curve_png, map_png, state
from nearkin.web.ask.survey import Plan, Survey, journal_path


@dataclass(frozen=True)
class Texts:
    """Texts of the raters' page: its title, instructions, and what raters agree to."""

    title: str = ""
    instructions: str = ""
    consent: str = ""
    goal: int | None = None  # answers that each rater is asked for


def ask_app(survey: Survey, texts: Texts | None = None, host: str = serving.LOCAL) -> Starlette:
    """The application of a survey: raters open `/{tokens[0]}/`, the experimenter `/{tokens[1]}/results/`."""

    def about(request: Request) -> Response:
        shown, form = vars(texts or Texts()), survey.form
        return JSONResponse(shown | {"title": shown["title"] or form.title, "question": form.title, "form": form.name})

    def join(request: Request, body: Record) -> Response:
        name = body.get("name", "")
        if not isinstance(name, str):
            raise ValueError("name must be text")
        return JSONResponse({"key": survey.join(name).key})

    def question(request: Request) -> Response:
        key = request.path_params["key"]
        asked = survey.ask(key)
        items = [survey.items.shown(item) for item in asked.shown]
        return JSONResponse({"question": asked.number, "items": items, "answered": len(survey.rater(key).answered)})

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

    Once the page is there, `announce` is called with the same and the links: "raters", "results", and "named" for
    each of `raters`. A link is a secret: who has it may answer. Links stay the same when a survey is resumed.
    FileExistsError if `out` or its journal exists and `resume` is False.
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
        named = {name: f"{page}/r/{survey.join(name).key}" for name in raters}
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
