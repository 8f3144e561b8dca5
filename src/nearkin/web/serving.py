"""What all pages share: who may open them, what they may load, and the server that shows them."""

import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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

from nearkin._types import Record

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
        exception_handlers={ValueError: _refused, OSError: _failed, HTTPException: _http_error},  # pyright: ignore[reportArgumentType]
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


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address; OSError where it is taken."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; give another --port or --host", f"{host}:{port}") from error


def run(app: Starlette, at: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM, which is raised again once every request has its answer."""
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[at])


@contextmanager
def until_stopped() -> Iterator[None]:
    """Ctrl-C or SIGTERM ends the block, and is no error: it is the way to stop a server."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def read_json(request: Request) -> Record:
    """The JSON object that a request sends; an error 415 or 400 for anything else."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(415, "send JSON")
    try:
        body = await request.json()
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "send valid JSON, not nested deeply") from error
    if not isinstance(body, dict):
        raise HTTPException(400, "send a JSON object")
    return body


async def _refused(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _failed(request: Request, error: OSError) -> Response:
    return JSONResponse({"error": f"the server cannot do that now ({error.strerror or error}); try again later"}, 503)


async def _http_error(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code)
