"""The server of all pages: secret links, content policy, and shutdown."""

import secrets
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from nearkin._fields import Record
from nearkin._guard import handled
from nearkin._json import parsed_json

LOCAL = "127.0.0.1"
MAX_BODY = 65_536  # bytes of a request: answers are short, nothing is uploaded
Get: TypeAlias = Callable[[Request], Any]
Post: TypeAlias = Callable[[Request, Record], Any]
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def make_app(routes: Sequence[Route], host: str = LOCAL) -> Starlette:
    """An application of these routes and of the files in web/static; every answer forbids foreign and inline code. On
    this machine's own address requests that name another host are refused (DNS rebinding)."""
    hosts = [LOCAL, "localhost", "testserver"] if host in (LOCAL, "localhost") else ["*"]
    return Starlette(
        routes=[*routes, Mount("/static", StaticFiles(packages=[("nearkin.web", "static")]))],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=_guard),
            Middleware(TrustedHostMiddleware, allowed_hosts=hosts),
        ],
        exception_handlers=dict.fromkeys((ValueError, OSError, KeyError, HTTPException), _error),
    )


async def _guard(request: Request, answer: RequestResponseEndpoint) -> Response:
    """Refuse long requests, also those that do not declare their length, and send the headers with every answer."""
    length = request.headers.get("content-length", "0" if request.method in ("GET", "HEAD") else "unknown")
    too_long = not length.isdigit() or int(length) > MAX_BODY
    response = JSONResponse({"error": "the request is too long"}, 413) if too_long else await answer(request)
    response.headers.update(_HEADERS)
    return response


async def _error(request: Request, error: Exception) -> Response:
    status, text = 400, str(error)
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    elif isinstance(error, KeyError):
        status, text = 404, "not found"
    elif isinstance(error, OSError):
        status, text = 503, f"the server cannot do that now ({error.strerror or error}); try again later"
    return JSONResponse({"error": text}, status)


def new_token() -> str:
    """A secret for an address, 128 bits."""
    return secrets.token_urlsafe(16)


def secret_routes(token: str, gets: Mapping[str, Get], posts: Mapping[str, Post] | None = None) -> list[Route]:
    """Routes of handlers by path, below an address that begins with the secret; 404 for any other beginning. What a
    handler returns is sent as JSON, unless it is a response."""

    def checked(handler: Callable[..., Any]) -> Callable:
        async def answer(request: Request) -> Response:
            # in a time that does not depend on where the two differ
            if not secrets.compare_digest(request.path_params["token"].encode(), token.encode()):
                raise HTTPException(404, "not found")
            sent = [await _read_json(request)] if request.method == "POST" else []
            made = await run_in_threadpool(handler, request, *sent)
            return made if isinstance(made, Response) else JSONResponse(made)

        return answer

    handlers = [("GET", *item) for item in gets.items()] + [("POST", *item) for item in (posts or {}).items()]
    return [Route(f"/{{token}}/{path}", checked(handler), methods=[method]) for method, path, handler in handlers]


async def _read_json(request: Request) -> Record:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(415, "send JSON")
    try:
        body = parsed_json(await request.body())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise HTTPException(400, "send a JSON object, not nested deeply")
    return body


def is_inside(file: Path, folder: Path) -> bool:
    """Whether a file, with links followed, is an ordinary one below a folder: no other one is served from it."""
    return file.is_file() and file.resolve().is_relative_to(folder.resolve())


def page(name: str) -> Get:
    """A handler that shows an HTML file of web/static."""
    return lambda request: Response(static_text(name), media_type="text/html")


def static_text(name: str) -> str:
    return files("nearkin.web").joinpath("static", name).read_text(encoding="utf-8")


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address; OSError where it is taken."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; give another port or host", f"{host}:{port}") from error


def run(app: Starlette, at: socket.socket, announce: Callable[[Record], None], links: Record) -> None:
    """Announce the links and serve, until Ctrl-C or SIGTERM once every request has its answer: that is no error, but
    the way to stop a server."""
    with handled(signal.SIGTERM, signal.default_int_handler), suppress(KeyboardInterrupt):
        announce(links)
        uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[at])
