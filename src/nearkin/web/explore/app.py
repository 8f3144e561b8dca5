"""The addresses of `nearkin explore`: a page and what it asks for, all behind one token and only to be read."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from nearkin._types import Record
from nearkin.web.explore.explorer import Explorer
from nearkin.web.serving import LOCAL, make_app, same, static_text


def explore_app(explorer: Explorer, token: str, host: str = LOCAL) -> Starlette:
    """The application: the page is `/{token}/`. Rows are asked for by number, never by a name or a path."""
    return make_app(_Pages(explorer, token).routes(), host)


class _Pages:
    def __init__(self, explorer: Explorer, token: str) -> None:
        self._explorer, self._token = explorer, token

    def routes(self) -> list[Route]:
        guarded = self._guarded
        return [
            Route("/{token}/", guarded(self._page)),
            Route("/{token}/about", guarded(lambda request: JSONResponse(self._explorer.about()))),
            Route("/{token}/column/{name}", guarded(self._column)),
            Route("/{token}/item/{row:int}", guarded(self._item)),
            Route("/{token}/worst", guarded(lambda request: JSONResponse(self._explorer.worst()))),
            Route("/{token}/left", guarded(self._left)),
            Route("/{token}/find", guarded(self._find)),
            Route("/{token}/picture/{row:int}", guarded(self._picture)),
            Route("/{token}/sweep/{name}.png", guarded(self._sweep)),
        ]

    def _guarded(self, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def checked(request: Request) -> Response:
            if not same(request.path_params["token"], self._token):
                raise HTTPException(404, "not found")
            return handler(request)

        return checked

    def _page(self, request: Request) -> Response:
        return Response(static_text("explore.html"), media_type="text/html")

    def _column(self, request: Request) -> Response:
        return _bytes(self._explorer.column(request.path_params["name"]), "application/octet-stream")

    def _item(self, request: Request) -> Response:
        return JSONResponse(self._explorer.item(request.path_params["row"]))

    def _left(self, request: Request) -> Response:
        return JSONResponse(self._explorer.asked_by(request.query_params.get("id", "")[:200]))

    def _find(self, request: Request) -> Response:
        rows = self._explorer.collection.find(request.query_params.get("text", "")[:200])
        found: list[Record] = [{"row": row, **about} for row, about in self._explorer.named(rows).items()]
        return JSONResponse(found)

    def _picture(self, request: Request) -> Response:
        row, pictures = request.path_params["row"], self._explorer.collection.beside.pictures
        self._explorer.check(row)
        there = pictures is not None and pictures.has(row)
        return _bytes(pictures.png(row) if pictures is not None and there else None, "image/png")

    def _sweep(self, request: Request) -> Response:
        swept = self._explorer.swept
        name, dark = request.path_params["name"], "dark" in request.query_params
        return _bytes(None if swept is None else swept.picture(name, dark), "image/png")


def _bytes(content: bytes | None, kind: str) -> Response:
    if content is None:
        raise HTTPException(404, "not found")
    return Response(content, media_type=kind)
