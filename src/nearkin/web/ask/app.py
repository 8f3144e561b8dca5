"""The survey's addresses: the raters' page and its calls behind one token, the experimenter's behind another."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from nearkin._types import Record
from nearkin.web.ask.results import curve_png, map_png, state
from nearkin.web.ask.survey import Question, Survey
from nearkin.web.serving import LOCAL, make_app, read_json, same, static_text


@dataclass(frozen=True)
class Texts:
    """What the raters' page says beside its questions: its title, instructions, and what they agree to."""

    title: str = ""
    instructions: str = ""
    consent: str = ""
    goal: int | None = None  # answers that each rater is asked for


def ask_app(survey: Survey, texts: Texts | None = None, host: str = LOCAL) -> Starlette:
    """The application of a survey: raters open `/{tokens[0]}/`, the experimenter `/{tokens[1]}/results/`."""
    pages = _Pages(survey, *survey.tokens, texts or Texts())
    return make_app(pages.routes(), host)


class _Pages:
    def __init__(self, survey: Survey, token: str, admin: str, texts: Texts) -> None:
        self._survey, self._token, self._admin, self._texts = survey, token, admin, texts

    def routes(self) -> list[Route]:
        rater, experimenter = self._for_raters, self._for_experimenter
        return [
            Route("/{token}/", rater(self._page)),
            Route("/{token}/r/{key}", rater(self._page)),
            Route("/{token}/api/about", rater(self._about)),
            Route("/{token}/api/join", self._posted(self._join), methods=["POST"]),
            Route("/{token}/api/r/{key}/question", rater(self._question)),
            Route("/{token}/api/r/{key}/answer", self._posted(self._answer), methods=["POST"]),
            Route("/{token}/api/r/{key}/undo", self._posted(self._undo), methods=["POST"]),
            Route("/{token}/media/{number:int}", rater(self._media)),
            Route("/{token}/results/", experimenter(self._results_page)),
            Route("/{token}/results/state", experimenter(self._state)),
            Route("/{token}/results/{picture}.png", experimenter(self._picture)),
        ]

    # ---- who may -----------------------------------------------------------------------------------------------------

    def _for_raters(self, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def checked(request: Request) -> Response:
            _check_token(request, self._token)
            return handler(request)

        return checked

    def _for_experimenter(self, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def checked(request: Request) -> Response:
            _check_token(request, self._admin)
            return handler(request)

        return checked

    def _posted(self, handler: Callable[[Request, Record], Response]) -> Callable[[Request], Any]:
        async def checked(request: Request) -> Response:
            _check_token(request, self._token)
            return await run_in_threadpool(handler, request, await read_json(request))

        return checked

    # ---- raters ------------------------------------------------------------------------------------------------------

    def _page(self, request: Request) -> Response:
        return Response(static_text("ask.html"), media_type="text/html")

    def _about(self, request: Request) -> Response:
        form, texts = self._survey.form, self._texts
        return JSONResponse(
            {
                "title": texts.title or form.title, "question": form.title, "form": form.name, "goal": texts.goal,
                "instructions": texts.instructions, "consent": texts.consent,
            }
        )  # fmt: skip

    def _join(self, request: Request, body: Record) -> Response:
        name = body.get("name", "")
        if not isinstance(name, str):
            raise ValueError("name must be text")
        return JSONResponse({"key": self._survey.join(name).key})

    def _question(self, request: Request) -> Response:
        key = request.path_params["key"]
        return self._shown(key, self._survey.ask(key))

    def _answer(self, request: Request, body: Record) -> Response:
        key = request.path_params["key"]
        self._survey.answer(key, body.get("question"), body.get("choice"), body.get("seconds", 0.0))  # pyright: ignore[reportArgumentType]
        return self._question(request)

    def _undo(self, request: Request, body: Record) -> Response:
        key = request.path_params["key"]
        self._survey.undo(key)
        return self._shown(key, self._survey.ask(key))

    def _shown(self, key: str, question: Question) -> Response:
        items = [self._survey.items.shown(item) for item in question.shown]
        done = len(self._survey.rater(key).answered)
        return JSONResponse({"question": question.number, "items": items, "answered": done})

    def _media(self, request: Request) -> Response:
        number, files = request.path_params["number"], self._survey.items.files
        file = files[number] if 0 <= number < len(files) else None
        if file is None:
            raise HTTPException(404, "not found")
        return FileResponse(file)

    # ---- experimenter ------------------------------------------------------------------------------------------------

    def _results_page(self, request: Request) -> Response:
        return Response(static_text("results.html"), media_type="text/html")

    def _state(self, request: Request) -> Response:
        return JSONResponse(state(self._survey))

    def _picture(self, request: Request) -> Response:
        draw = {"map": map_png, "curve": curve_png}.get(request.path_params["picture"])
        if draw is None:
            raise HTTPException(404, "not found")
        return Response(draw(self._survey, "dark" in request.query_params), media_type="image/png")


def _check_token(request: Request, wanted: str) -> None:
    if not same(request.path_params["token"], wanted):
        raise HTTPException(404, "not found")
