"""What all pages share: who may open them, what they may load, and the server that shows them."""

import secrets
from collections.abc import Callable, Sequence
from importlib.resources import files

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL = "127.0.0.1"
MAX_BODY = 65_536  # bytes of a request: answers are short, nothing is uploaded
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_TYPES = {"css": "text/css", "js": "text/javascript", "html": "text/html"}


class Guard:
    """Refuse long requests, and send every answer with headers that forbid foreign and inline code."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY:
            await JSONResponse({"error": "the request is too long"}, 413)(scope, receive, send)
            return
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MAX_BODY:
                raise HTTPException(413, "the request is too long")
            return message

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, limited, dressed)


def new_token() -> str:
    """A secret for an address, 128 bits."""
    return secrets.token_urlsafe(16)


def same(given: str, wanted: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell where they differ."""
    return secrets.compare_digest(given.encode(), wanted.encode())


def make_app(routes: Sequence[BaseRoute], host: str = LOCAL, lifespan: Callable | None = None) -> Starlette:
    """An application of these routes and of the files in web/static, behind `Guard`.

    Where it listens on this machine only, requests that name another host are refused: a page elsewhere cannot reach it
    by a name of its own that leads here.
    """
    hosts = [LOCAL, "localhost", "testserver"] if host in (LOCAL, "localhost") else ["*"]
    return Starlette(
        routes=[*routes, Route("/static/{name}", static_file)],
        middleware=[Middleware(Guard), Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
        exception_handlers={ValueError: _refused, HTTPException: _http_error},  # pyright: ignore[reportArgumentType]
        lifespan=lifespan,
    )


def static_text(name: str) -> str:
    """A file of web/static."""
    return files("nearkin.web").joinpath("static", name).read_text(encoding="utf-8")


def static_file(request: Request) -> Response:
    """A file of web/static by its name; 404 for any other."""
    name = request.path_params["name"]
    known = {entry.name for entry in files("nearkin.web").joinpath("static").iterdir()}
    kind = _TYPES.get(name.rpartition(".")[2])
    if name not in known or kind is None:
        raise HTTPException(404, "not found")
    return Response(static_text(name), media_type=kind)


def run(app: Starlette, host: str, port: int) -> None:
    """Serve until Ctrl-C; OSError where the port is taken."""
    uvicorn.Server(uvicorn.Config(app, host=host, port=port, log_level="error", access_log=False)).run()


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _http_error(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code)
