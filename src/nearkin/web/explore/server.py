"""The page of `nearkin explore`: its columns of places and colours; served, or as one HTML file."""

import base64
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import KNeighborsRegressor
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from nearkin._check import check_integer
from nearkin._fields import Record, counted
from nearkin._storage import replacing
from nearkin.jobs import outputs
from nearkin.web import serving
from nearkin.web.explore.collection import Collection, png

MOST = 100_000  # rows on a map; more are sampled at random
SAMPLE = 3_000  # rows that t-SNE lays out, and that give the principal axes
STEPS = 500  # of t-SNE; 1,000 take twice the time
_MEASURED = 8_192  # rows decoded, or placed, at a time
_SEARCHED = 256  # rows searched between two looks at whether to stop


@dataclass
class Column:
    """A column (m, 2) of places or (m,) of values, nan where not measured."""

    title: str
    values: np.ndarray
    note: str = ""
    version: int = 0

    def record(self, name: str) -> Record:
        """The layout that a page needs before it reads the values."""
        return {"name": name, "title": self.title, "note": self.note, "version": self.version}


class Columns:
    """Columns of the vectors on the map, `rows` (m,); `start` measures the slow ones in a thread, `run` at once."""

    def __init__(self, collection: Collection, most: int = MOST) -> None:
        self.collection: Collection = collection
        self.k: int = min(collection.k, len(collection) - 1)
        self.rows: np.ndarray = _drawn(np.arange(len(collection)), most)
        self.layouts: dict[str, Column] = {}
        self.colours: dict[str, Column] = {}
        self.busy = ""
        self._closed = threading.Event()
        if collection.views[0].index.n_features == 2:
            self.layouts["map"] = Column("the embedding itself", collection.vectors(self.rows))
        else:
            places = principal(collection, self.rows)
            self.layouts["pca"] = Column("principal axes", places, "The two principal axes of largest variance.")
        note = "List numbers have no order: equal colours mean the same list, similar ones nothing."
        for number, view in enumerate(collection.views):
            if (lists := view.lists()) is not None:
                self.colours[f"list{number}"] = Column(self._of("list", number), lists[self.rows].astype(float), note)

    def start(self) -> None:
        """Measure the other columns in the background; the process may end before."""
        self.busy = "measuring"
        threading.Thread(target=self.run, daemon=True).start()

    def close(self) -> None:
        """End the background's work after its present step."""
        self._closed.set()

    def run(self) -> None:
        """Measure all columns, the slowest last."""
        for step in self._steps():
            self.busy = step
            if self._closed.is_set():
                return
        self.busy: str = ""

    def kept(self) -> list[Record]:
        """Each index's share of exact neighbours kept, None if not measured, and the number of vectors that it is
        of."""
        lost = [self.colours.get(f"lost{number}") for number in range(len(self.collection.views))]
        known = [np.empty(0) if column is None else column.values[~np.isnan(column.values)] for column in lost]
        return [{"rows": len(v), "recall": 1 - float(v.mean()) / self.k if len(v) else None} for v in known]

    def _steps(self) -> Iterator[str]:
        """Do the slow work in steps; yields what comes next."""
        if self.collection.exact is not None:
            yield "measuring quantization errors"
            self._errors()
        if "map" not in self.layouts and len(self.rows) > 3:
            yield "laying out neighbours (t-SNE)"
            note = "t-SNE: neighbours lie together; distances between groups say little."
            if len(self.rows) > SAMPLE:
                note += f" {SAMPLE:,} vectors drawn at random; others at the mean of the three nearest of these."
            self.layouts["neighbours"] = Column("neighbours", neighbour_preserving(self.collection, self.rows), note)
        if self.collection.exact is not None and self.k < len(self.collection) - 1:  # else a search returns all rows
            yield from self._lost()

    def _errors(self) -> None:
        note = "Squared distance between a vector and its decoded code."
        for number, view in enumerate(self.collection.views):
            if view.index.metric != "hamming":
                off = (self.collection.normalised(some) - view.decoded(some) for some in _batches(self.rows, _MEASURED))
                values = np.concatenate([(rows**2).sum(axis=1) for rows in off])
                self.colours[f"error{number}"] = Column(self._of("quantization error", number), values, note)

    def _lost(self) -> Iterator[str]:
        views, m = self.collection.views, len(self.rows)
        note = f"How many of its {self.k} exact neighbours, other vectors, a vector loses without rescoring."
        columns = [Column(self._of("neighbours lost", n), np.full(m, np.nan), note) for n in range(len(views))]
        self.colours |= {f"lost{number}": column for number, column in enumerate(columns)}
        # in random order, so that the share so far is an estimate of the whole
        for done, some in enumerate(_batches(np.random.default_rng(1).permutation(m), _SEARCHED)):
            yield f"comparing neighbours: {done * _SEARCHED:,} of {counted(m, 'vector')}"
            for column, lost in zip(columns, self.collection.lost(self.rows[some]), strict=True):
                column.values[some] = lost
                column.version += 1

    def _of(self, what: str, number: int) -> str:
        return what if len(self.collection.views) == 1 else f"{what}, {self.collection.views[number].name}"


def principal(collection: Collection, rows: np.ndarray) -> np.ndarray:
    """The two leading principal components of `rows` (m,), (m, 2); the second one 0 if there is none."""
    X = collection.normalised(_drawn(rows, SAMPLE))
    model = PCA(n_components=min(2, *X.shape), svd_solver="randomized", random_state=0).fit(X)
    placed = np.concatenate([model.transform(collection.normalised(some)) for some in _batches(rows, _MEASURED)])
    return np.pad(placed, ((0, 0), (0, 2 - placed.shape[1])))


def neighbour_preserving(collection: Collection, rows: np.ndarray) -> np.ndarray:
    """`rows` (m,) by scikit-learn's t-SNE, (m, 2).

    Of more than `SAMPLE` vectors a random sample is laid out; each other one is put at the mean, weighted by
    1 / distance, of the three nearest of them.
    """
    X = collection.normalised(_drawn(rows, SAMPLE))
    perplexity = min(30.0, max(2.0, (len(X) - 1) / 3))
    made = TSNE(init="pca", perplexity=perplexity, max_iter=STEPS, random_state=0, n_jobs=1).fit_transform(X)
    if len(made) == len(rows):
        return made
    placed = KNeighborsRegressor(3, weights="distance").fit(X, made)  # a drawn row stays where it is
    return np.concatenate([placed.predict(collection.normalised(some)) for some in _batches(rows, _MEASURED)])


def _drawn(rows: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the rows, drawn at random, in their order."""
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _batches(numbers: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return (numbers[first : first + size] for first in range(0, len(numbers), size))


MOST_IN_FILE = 3_000  # rows in one HTML file; it takes about two kilobytes for each
_AT_ONCE = 32  # rows searched at a time for a file


@dataclass
class Explorer:
    """The data of the page: a collection and its columns."""

    title: str
    collection: Collection
    columns: Columns

    def about(self) -> Record:
        """The data that the page loads first."""
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
            "columns": list(collection.texts),
            "busy": columns.busy,
        }

    def item(self, row: int) -> Record:
        """The neighbours of a vector among the others, and what is known of each; ValueError for a vector that is
        none."""
        (answer,) = self.collection.answers(np.array([self.check(row)]))
        return {"row": row, **vars(answer), "about": self.about_rows(answer.rows() | {row})}

    def about_rows(self, rows: Iterable[int]) -> dict[int, Record]:
        """What is known of vectors; ValueError for a number that is no vector."""
        return {self.check(row): self.collection.about(row) for row in rows}

    def find(self, text: str) -> list[Record]:
        """The vectors whose id or any column holds `text`."""
        return [{"row": row, **self.collection.about(row)} for row in self.collection.find(text)]

    def values(self, name: str) -> list[str]:
        """The texts of a table's column on the map, those of "id" as ids; KeyError for an unknown name."""
        column = self.collection.ids if name == "id" else self.collection.texts[name]
        return column[self.columns.rows].tolist()

    def column(self, name: str) -> bytes:
        """The values of a column as little-endian float32, those of "rows" as int32; KeyError for an unknown name."""
        if name == "rows":
            return self.columns.rows.astype("<i4").tobytes()
        known = self.columns.layouts | self.columns.colours
        return np.ascontiguousarray(known[name].values, "<f4").tobytes()

    def picture(self, row: int) -> bytes:
        """The picture of a vector as PNG; KeyError without one, ValueError for a vector that is none."""
        if (picture := self.collection.pictures[self.check(row)]) is None:
            raise KeyError(row)
        return png(picture)

    def check(self, row: int) -> int:
        """The vector; ValueError for a number that is none."""
        return check_integer(row, "row", low=0, high=len(self.collection) - 1)


def explore_app(explorer: Explorer, token: str, host: str = serving.LOCAL) -> Starlette:
    """The application: the page is `/{token}/`. Vectors are asked for by number, never by a name or a path."""

    def asked(request: Request, name: str) -> str:
        return request.query_params.get(name, "")[:1000]

    def column(request: Request) -> Response:
        return Response(explorer.column(request.path_params["name"]), media_type="application/octet-stream")

    def picture(request: Request) -> Response:
        return Response(explorer.picture(request.path_params["row"]), media_type="image/png")

    handlers: dict[str, serving.Get] = {
        "": serving.page("explore.html"),
        "about": lambda request: explorer.about(),
        "column/{name}": column,
        "item/{row:int}": lambda request: explorer.item(request.path_params["row"]),
        "rows": lambda request: explorer.about_rows(map(int, asked(request, "at").split(","))),
        "values": lambda request: explorer.values(asked(request, "name")),
        "find": lambda request: explorer.find(asked(request, "text")),
        "picture/{row:int}": picture,
    }
    return serving.make_app(serving.secret_routes(token, handlers), host)


def serve(
    collection: Collection,
    title: str,
    *,
    host: str = serving.LOCAL,
    port: int = 8766,
    announce: Callable[[Record], None],
) -> Record:
    """Serve the page, whose secret link is `announce`d, until Ctrl-C or SIGTERM; returns what was measured."""
    with serving.listening(host, port) as at, closing(Columns(collection)) as columns:
        explorer, token = Explorer(title, collection, columns), serving.new_token()
        columns.start()
        about = {"link": f"http://{host}:{at.getsockname()[1]}/{token}/", "rows": len(collection)}
        serving.run(explore_app(explorer, token, host), at, announce, about)
    about = explorer.about()
    return {name: about[name] for name in ("rows", "k", "metric", "indexes")}


def write_page(collection: Collection, title: str, out: str | os.PathLike[str], *, most: int = MOST_IN_FILE) -> int:
    """Write one HTML file with at most `most` vectors, drawn at random, and neighbours among all; returns their
    number."""
    out = outputs.check_ending(out, (".html", ".htm"))
    columns = Columns(collection, most)
    columns.run()
    with replacing(out) as fresh:
        fresh.write_text(single_page(Explorer(title, collection, columns)), encoding="utf-8")
    return len(columns.rows)


def single_page(explorer: Explorer) -> str:
    """The whole page of an explorer whose columns are complete: its code and all answers inside.

    A policy in the page forbids all code but its own, by checksum, and everything from outside.
    """
    data = json.dumps(_data(explorer)).replace("<", "\\u003c")  # no text of other people can end the element
    page = serving.static_text("explore.html")
    policy = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
    for element, link, end in (
        ("style", r'<link rel="stylesheet" href="/static/([\w.]+)">\n', "</head>"),
        ("script", r'<script src="/static/([\w.]+)"></script>\n', "</body>"),
    ):
        code = "\n".join(map(serving.static_text, re.findall(link, page)))
        policy += f"; {element}-src 'sha256-{_base64(hashlib.sha256(code.encode()).digest())}'"
        page = re.sub(link, "", page).replace(end, f"<{element}>{code}</{element}>\n{end}", 1)
    page = page.replace("<head>", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">', 1)
    return page.replace("<script>", f'<script type="application/json" id="data">{data}</script>\n<script>', 1)


def _data(explorer: Explorer) -> Record:
    columns, collection = explorer.columns, explorer.collection
    answers = {}
    for rows in _batches(columns.rows, _AT_ONCE):
        answers |= dict(zip(rows.tolist(), collection.answers(rows), strict=True))
    named = explorer.about_rows(sorted({*answers, *(row for answer in answers.values() for row in answer.rows())}))
    return {
        "about": explorer.about(),
        "columns": {name: _base64(explorer.column(name)) for name in ("rows", *columns.layouts, *columns.colours)},
        "answers": {row: vars(answer) for row, answer in answers.items()},
        "named": named,
        "values": {name: explorer.values(name) for name in ("id", *collection.texts)},
        "pictures": {row: _base64(explorer.picture(row)) for row, about in named.items() if about["picture"]},
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
