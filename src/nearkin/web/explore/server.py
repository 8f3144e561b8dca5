"""The page of `nearkin explore`: served until it is stopped, as one HTML file, or in a notebook."""

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nearkin._storage import replacing
from nearkin._types import Record
from nearkin.index import Index
from nearkin.pipeline.inputs import find_ids
from nearkin.web import serving
from nearkin.web.explore.collection import Answer, Collection, collect_rows
from nearkin.web.explore.columns import Columns
from nearkin.web.explore.metadata import Metadata, Pictures, Sweep

MOST = 3_000  # rows in one HTML file; it takes about two kilobytes for each
_AT_ONCE = 16  # rows searched at a time for a file


@dataclass
class Explorer:
    """What the page shows: a collection, its columns, and a sweep's figures or None."""

    title: str
    collection: Collection
    columns: Columns
    sweep: Sweep | None = None

    def about(self) -> Record:
        """What the page shows before a click."""
        collection, columns = self.collection, self.columns
        return {
            "title": self.title,
            "rows": len(collection),
            "shown": len(columns.rows),
            "k": columns.k,
            "metric": collection.metric,
            "exact": collection.exact is not None,
            "oversamples": list(collection.oversamples),
            "indexes": [
                {"name": view.name, "codec": view.codec, "metric": view.index.metric, **kept}
                for view, kept in zip(collection.views, columns.kept(), strict=True)
            ],
            "layouts": [column.record(name) for name, column in list(columns.layouts.items())],
            "colours": [column.record(name) for name, column in list(columns.colours.items())],
            "busy": columns.busy,
            "left": None if collection.left is None else len(collection.left.ids),
            "sweep": None if self.sweep is None else self.sweep.record(),
        }

    def item(self, row: int) -> Record:
        """The neighbours of a row among the others, and what is known of each; ValueError for a row that is none."""
        self.check(row)
        (answer,) = self.collection.answers_of_rows(np.array([row]))
        return self._record(answer, row)

    def left_list(self, name: str) -> Record:
        """A left entity's history, and the rows found beyond it; ValueError for an unknown one."""
        left = self.collection.left
        if left is None:
            raise ValueError("this index has no left side; `nearkin train` makes one")
        (at,) = find_ids([name], left.ids, "left id")
        history = left.seen(at).tolist()
        (answer,) = self.collection.answers(left.vectors[at : at + 1], [frozenset(history)])
        return self._record(answer) | {"left": name, "history": [self.collection.about(row) for row in history]}

    def _record(self, answer: Answer, row: int = -1) -> Record:
        rows = answer.rows() | ({row} if row >= 0 else set())
        return {"row": row, **vars(answer), "about": self.about_rows(rows)}

    def about_rows(self, rows: Iterable[int]) -> dict[int, Record]:
        """What is known of rows."""
        return {row: self.collection.about(row) for row in rows}

    def find(self, text: str) -> list[Record]:
        """The rows whose id, label or text holds `text`."""
        return [{"row": row, **about} for row, about in self.about_rows(self.collection.find(text)).items()]

    def worst(self) -> list[Record]:
        """The worst rows, with the neighbours that they lose and their quantization error."""
        at = {row: place for place, row in enumerate(self.columns.rows.tolist())}
        known = {name: self.columns.colours.get(f"{name}0") for name in ("lost", "error")}
        return [
            {"row": row, **self.collection.about(row)}
            | {name: _number(column.values[at[row]]) for name, column in known.items() if column is not None}
            for row in self.columns.worst()
        ]

    def column(self, name: str) -> bytes | None:
        """The values of a column as little-endian float32, those of "rows" as int32; None for an unknown name."""
        if name == "rows":
            return self.columns.rows.astype("<i4").tobytes()
        column = self.columns.column(name)
        return None if column is None else np.ascontiguousarray(column.values, "<f4").tobytes()

    def picture(self, row: int) -> bytes | None:
        """The picture of a row as PNG, None without one; ValueError for a row that is none."""
        self.check(row)
        pictures = self.collection.metadata.pictures
        return pictures.png(row) if pictures is not None and pictures.has(row) else None

    def check(self, row: int) -> None:
        """ValueError for a row that is none."""
        if not 0 <= row < len(self.collection):
            raise ValueError(f"row is {row}; it must be at least 0 and below {len(self.collection)}")


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(f"{value:.6g}")


def explore_app(explorer: Explorer, token: str, host: str = serving.LOCAL) -> Starlette:
    """The application: the page is `/{token}/`. Rows are asked for by number, never by a name or a path."""

    def asked(request: Request, name: str) -> str:
        return request.query_params.get(name, "")[:200]

    def sweep(request: Request) -> Response:
        name, dark = request.path_params["name"], "dark" in request.query_params
        return _bytes(explorer.sweep and explorer.sweep.picture(name, dark), "image/png")

    handlers: dict[str, serving.Get] = {
        "": serving.page("explore.html"),
        "about": lambda request: JSONResponse(explorer.about()),
        "column/{name}": lambda request: _bytes(explorer.column(request.path_params["name"])),
        "item/{row:int}": lambda request: JSONResponse(explorer.item(request.path_params["row"])),
        "worst": lambda request: JSONResponse(explorer.worst()),
        "left": lambda request: JSONResponse(explorer.left_list(asked(request, "id"))),
        "find": lambda request: JSONResponse(explorer.find(asked(request, "text"))),
        "picture/{row:int}": lambda request: _bytes(explorer.picture(request.path_params["row"]), "image/png"),
        "sweep/{name}.png": sweep,
    }
    return serving.make_app(serving.secret_routes(token, handlers), host)


def _bytes(content: bytes | None, kind: str = "application/octet-stream") -> Response:
    if content is None:
        raise HTTPException(404, "not found")
    return Response(content, media_type=kind)


def serve(
    collection: Collection,
    title: str,
    sweep: Sweep | None = None,
    *,
    host: str = serving.LOCAL,
    port: int = 8766,
    announce: Callable[[Record], None],
) -> Record:
    """Serve the page until Ctrl-C or SIGTERM; returns the number of rows and what was measured of each index.

    Once the page is there, `announce` is called with its link, which is a secret.
    """
    with serving.listening(host, port) as at, closing(Columns(collection)) as columns, serving.until_stopped():
        explorer, token = Explorer(title, collection, columns, sweep), serving.new_token()
        columns.start()
        announce({"link": f"http://{host}:{at.getsockname()[1]}/{token}/", "rows": len(collection)})
        serving.run(explore_app(explorer, token, host), at)
    about = explorer.about()
    return {name: about[name] for name in ("rows", "k", "metric", "indexes")}


def write_page(
    collection: Collection, title: str, out: str | os.PathLike, sweep: Sweep | None = None, *, most: int = MOST
) -> int:
    """Write the page as one HTML file that needs no network; returns how many rows are on it.

    Of more than `most` rows so many are drawn at random; their neighbours are those among all rows.
    """
    out = Path(out)
    if out.is_dir() or out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"out is {out}; it must be the name of a file that ends in .html")
    explorer = _measured(collection, title, sweep, most)
    with replacing(out) as fresh:
        fresh.write_text(single_page(explorer), encoding="utf-8")
    return len(explorer.columns.rows)


def _measured(collection: Collection, title: str, sweep: Sweep | None, most: int) -> Explorer:
    columns = Columns(collection, most)
    columns.run()
    return Explorer(title, collection, columns, sweep)


@dataclass(frozen=True)
class NotebookPage:
    """The page as a notebook shows it; `html` is the whole of it."""

    html: str

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="nearkin explore" srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-forms" '
            'style="width:100%;height:46rem;border:0"></iframe>'
        )


def explore(
    index: Index,
    vectors: np.ndarray | None = None,
    *,
    labels: np.ndarray | None = None,
    texts: np.ndarray | None = None,
    images: np.ndarray | None = None,
    compare: Index | None = None,
    k: int = 10,
    most: int = 1_000,
) -> NotebookPage:
    """The page of `nearkin explore` for the last line of a notebook's cell.

    vectors (n, d): the exact rows, where the index keeps none. labels, texts (n,), images (n, h, w[, 3]): one for each
    row. compare: another index over the same rows. Of more than `most` rows so many are drawn at random; their
    neighbours are those among all rows. ValueError for arrays of another length.
    """
    for name, values in (("labels", labels), ("texts", texts), ("images", images)):
        if values is not None and len(values) != len(index):
            raise ValueError(f"{name} has {len(values)} values and the index {len(index)} rows; give one for each")
    metadata = Metadata(
        None if labels is None else np.asarray(labels).astype(str),
        None if texts is None else np.asarray(texts).astype(str),
        None if images is None else Pictures(np.asarray(images)),
    )
    rows = None if vectors is None else np.ascontiguousarray(vectors, np.float32)
    collection = collect_rows(index, rows, metadata, other=compare, k=k)
    return NotebookPage(single_page(_measured(collection, "index", None, most)))


def single_page(explorer: Explorer) -> str:
    """The whole page of an explorer whose columns are complete: its code and all answers inside.

    A policy in the page forbids all code but its own, by checksum, and everything from outside.
    """
    data = json.dumps(_data(explorer)).replace("<", "\\u003c")  # no text of other people can end the element
    page = serving.static_text("explore.html")
    style, script = (
        "\n".join(serving.static_text(name) for name in re.findall(rf'="/static/([\w.]+\.{kind})">', page))
        for kind in ("css", "js")
    )
    policy = (
        f"default-src 'none'; script-src '{_checksum(script)}'; style-src '{_checksum(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head, _, rest = page.partition("<head>")
    rest = re.sub(r'<(link rel="stylesheet"|script src=)[^\n]*\n', "", rest)
    rest = rest.replace("</head>", f"<style>{style}</style>\n</head>")
    body, _, tail = rest.rpartition("</body>")
    return (
        f'{head}<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">{body}'
        f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>\n</body>{tail}'
    )


def _checksum(text: str) -> str:
    return f"sha256-{_base64(hashlib.sha256(text.encode()).digest())}"


def _data(explorer: Explorer) -> Record:
    columns, collection, sweep = explorer.columns, explorer.collection, explorer.sweep
    answers, rows = {}, columns.rows.tolist()
    for first in range(0, len(rows), _AT_ONCE):
        some = rows[first : first + _AT_ONCE]
        answers |= dict(zip(some, collection.answers_of_rows(np.array(some)), strict=True))
    used = sorted({*rows, *(row for answer in answers.values() for row in answer.rows())})
    pictures = {row: png for row in used if (png := explorer.picture(row)) is not None}
    names = ["rows", *columns.layouts, *columns.colours]
    drawings = [(name, dark) for name in ("bytes", "speed") for dark in (False, True) if sweep is not None]
    return {
        "about": explorer.about() | {"left": None},  # a file answers for rows only
        "columns": {name: _base64(explorer.column(name)) for name in names},
        "answers": {row: vars(answer) for row, answer in answers.items()},
        "named": explorer.about_rows(used),
        "worst": explorer.worst(),
        "pictures": {row: _base64(png) for row, png in pictures.items()},
        "sweep": {f"{name}{'-dark' * dark}": _base64(sweep and sweep.picture(name, dark)) for name, dark in drawings},
    }


def _base64(content: bytes | None) -> str:
    return base64.b64encode(content or b"").decode()
