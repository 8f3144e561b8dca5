"""The vectors that a page shows: labels, texts and pictures, one index over them or two, and neighbours in each."""

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
from PIL import Image

from nearkin._check import check_integer
from nearkin._fields import Record, counted
from nearkin._storage import is_of_system
from nearkin.data import open_array, read_column, read_table, read_vectors
from nearkin.export import Source
from nearkin.index import Index
from nearkin.jobs import inputs
from nearkin.metrics import without_self
from nearkin.web.serving import is_inside

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_SIZE = 160  # pixels of a picture's longer side on a page


Picture: TypeAlias = Path | np.ndarray
"""A file, or an array (h, w[, 3]) uint8."""


def png(picture: Picture) -> bytes:
    """A picture encoded again, as PNG; ValueError for a file that is none."""
    buffer = io.BytesIO()
    if isinstance(picture, np.ndarray):
        Image.fromarray(picture).save(buffer, format="PNG")
        return buffer.getvalue()
    try:
        with Image.open(picture, formats=("PNG", "JPEG", "GIF", "WEBP", "BMP")) as image:
            image.thumbnail((_SIZE, _SIZE))
            image.convert("RGB").save(buffer, format="PNG")
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        if is_of_system(error):
            raise
        raise ValueError(f"{picture} is no picture that can be read ({error})") from error
    return buffer.getvalue()


def read_values(path: str, ids: Sequence[str], ids_column: str | None, role: str) -> dict[str, np.ndarray]:
    """Columns (n,) of texts by their names: one in the order of the vectors, called `role`, or with `ids_column` those
    of a table whose vectors are found by that column, "" where one is missing. ValueError if it does not fit."""
    if ids_column is None:
        values = np.array([*map(str, read_column(path, long=True))], object)  # none takes the room of the longest
        if len(values) != len(ids):
            raise ValueError(
                f"{path} has {counted(len(values), 'value')} and the index {counted(len(ids), 'vector')}; give one for "
                "each, or name its column of ids: ids_column='id'"
            )
        return {role: values}
    table = read_table(path)
    found = inputs.places_of(np.array(ids), table.column(ids_column, "ids_column").labels())
    if (found < 0).all():
        raise ValueError(f"no id of {path} ({ids_column}) is in the index, whose ids are such as {ids[0]!r}")
    others = {name: column for name, column in table.columns.items() if name != ids_column}
    others = {name: column for name, column in others.items() if column.kind != "list"} or others  # not the vectors
    columns = {name: np.where(found < 0, "", np.array(one.text(), object)[found]) for name, one in others.items()}
    return columns if len(columns) > 1 else dict(zip([role], columns.values(), strict=False))


def read_pictures(path: str, ids: Sequence[str]) -> Sequence[Picture | None]:
    """Pictures of a folder, whose files are called as the ids (cat.jpg for cat), or an array (.npy, .npz:key); links
    that lead out of the folder are none of its pictures."""
    if os.path.isdir(path):
        folder = Path(path)
        files = {f.stem: f for f in folder.iterdir() if f.suffix.lower() in _ENDINGS and is_inside(f, folder)}
        pictures = [files.get(name) for name in ids]
        if not any(pictures):
            some = ", ".join(sorted(files)[:3]) or "no pictures"
            raise ValueError(f"no picture in {path} is called like an id ({ids[0]}.png ...); it holds {some}")
        return pictures
    array = open_array(path)
    of_images = array.ndim == 3 or (array.ndim == 4 and array.shape[3] == 3)
    if array.dtype != np.uint8 or not of_images or len(array) != len(ids):
        raise ValueError(
            f"{path} has {array.dtype} of shape {array.shape}; pictures must be uint8, 0 to 255, of shape "
            f"({len(ids)}, height, width) or ({len(ids)}, height, width, 3), one for each row"
        )
    return list(array)


OVERSAMPLES = (2, 8, 32)
_BY_DISTANCE = {"l2", "hamming"}  # the others are products


class IndexView:
    """An index whose ids are the collection's row numbers and whose kept vectors are the exact vectors, if known."""

    def __init__(self, name: str, index: Index) -> None:
        self.name: str = name
        self.index: Index = index
        self.source: Source = Source(index)

    @property
    def codec(self) -> str:
        """The code in words."""
        quantizer = self.index.quantizer
        lists = f", {self.index.n_probe} of {self.index.n_lists} lists searched" if self.index.n_lists else ""
        name = "exact vectors" if quantizer is None else type(quantizer).__name__
        return f"{name}, {self.index.bytes_per_vector} bytes a vector{lists}"

    def scores(self, Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Scores (q, c) of queries Q (q, d) by the codes of `rows` (q, c), as of `Index.search`; infinite for -1."""
        far = self.source.distances(self.source.engine_queries(Q), self.source.positions(rows), as_searched=True)
        return far if self.index.metric in _BY_DISTANCE else -far

    def decoded(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (b, d) that the codes of `rows` (b,) decode to, at their norms if the index knows these."""
        return self.source.as_searched(self.source.positions(rows))[:, : self.source.d]

    def lists(self) -> np.ndarray | None:
        """The list (n,) of the inverted file that holds each vector, None without one."""
        lists = self.source.lists()
        return None if lists is None else lists[self.source.positions(np.arange(len(lists)))]


@dataclass(frozen=True)
class Answer:
    """The neighbours of one query, as vectors, nearest first: `exact` (k,) or None; `found[i][j]` (k,) of index i, at j
    = 0 without rescoring, then by each of `Collection.oversamples`; `true` and `coded[i]`: scores of these vectors."""

    exact: list[int] | None
    found: list[list[list[int]]]
    true: dict[int, float]
    coded: list[dict[int, float]]

    def rows(self) -> set[int]:
        return {*(self.exact or ()), *(row for lists in self.found for some in lists for row in some)}


class Collection:
    """Vectors 0, ..., n - 1 in the order of an index, and their neighbours in it; `open_collection` reads one.

    `vectors` (n, d) are the exact ones where the index keeps none; `texts` are columns (n,) by their names, such as
    "label" and "text"; `other` is an index of the same vectors to compare with. ValueError for bits without vectors,
    and for what does not fit.
    """

    def __init__(
        self,
        index: Index,
        vectors: np.ndarray | None = None,
        texts: Mapping[str, np.ndarray] | None = None,
        pictures: Sequence[Picture | None] = (),
        *,
        other: Index | None = None,
        names: Sequence[str] = ("index", "other"),
        k: int = 10,
    ) -> None:
        source = Source(index)
        if vectors is None and index.kept is None and index.quantizer is None:
            vectors = source.decoded(np.arange(len(index)))  # an exact index holds the rows themselves
        first = IndexView(names[0], index.view(None, index.kept if vectors is None else vectors))
        kept = first.index.kept
        if kept is None and index.metric == "hamming":
            raise ValueError(
                "the index holds bits alone, from which a row's neighbours cannot be found; give its vectors "
                "or compress them again with keep_vectors=True"
            )
        self.views: list[IndexView] = [first]
        if other is not None:  # of the same rows, known by their ids
            rows, name = source.positions(other.row_ids), names[1]
            if len(other) != len(index) or (rows < 0).any() or other.n_features != index.n_features:
                raise ValueError(
                    f"{name} holds other vectors than the first index; compare indexes of the same vectors and ids"
                )
            if other.metric != index.metric and not {other.metric, index.metric} <= _BY_DISTANCE:
                raise ValueError(
                    f"{name} has metric {other.metric!r}, the first index {index.metric!r}; compare equal ones"
                )
            self.views.append(IndexView(name, other.view(rows, kept and kept.take(rows))))
        self.ids: np.ndarray = index.row_ids.astype(str)
        self.texts: Mapping[str, np.ndarray] = texts or {}
        self.pictures: Sequence[Picture | None] = pictures or [None] * len(index)
        self.k: int = check_integer(k, "k", low=1)
        self.exact: IndexView | None = None if kept is None else IndexView("exact", first.source.exact().index)
        self.metric: str = index.metric if self.exact is None else self.exact.index.metric
        # multiples of k candidates to rescore
        self.oversamples: tuple[int, ...] = () if self.exact is None else OVERSAMPLES

    def __len__(self) -> int:
        return len(self.views[0].index)

    def about(self, row: int) -> Record:
        """What is known of a vector; None for missing values."""
        known = {name: str(values[row]) for name, values in self.texts.items()}
        named = {"id": str(self.ids[row]), "label": known.pop("label", None), "text": known.pop("text", None)}
        return named | {"more": known, "picture": self.pictures[row] is not None}

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """The rows (b, d) as queries: exact where the collection has exact ones, else their decoded codes."""
        first = self.views[0]
        return first.decoded(rows) if first.index.kept is None else first.index.kept.rows(rows)

    def normalised(self, rows: np.ndarray) -> np.ndarray:
        """The vectors as the metric compares them: of norm 1 for "cosine"."""
        return self.views[0].source.as_compared(self.vectors(rows))

    def find(self, text: str, most: int = 30) -> list[int]:
        """Vectors whose id is `text`, then those whose id begins with it, then those with it in id or any column."""
        text = text.strip().lower()
        if not text:
            return []
        names = np.char.lower(self.ids)
        hits = [names == text, np.char.startswith(names, text), np.char.find(names, text) >= 0]
        hits += [np.array([text in cell.lower() for cell in column.tolist()], bool) for column in self.texts.values()]
        return list(dict.fromkeys(row for hit in hits for row in np.flatnonzero(hit)[:most].tolist()))[:most]

    def answers(self, rows: np.ndarray) -> list[Answer]:
        """The neighbours of `rows` (b,) among the other vectors."""
        Q, k = self.vectors(rows), min(self.k + 1, len(self))
        depths = None, *self.oversamples  # the codes alone, then every place of the page's slider
        searches = [[view.index.search(Q, k, oversample=depth) for depth in depths] for view in self.views]
        exact = [] if self.exact is None else [self.exact.index.search(Q, k)[1]]
        # all rows of any list get all scores: the page compares what one search found with what another one missed
        together = np.hstack([*exact, *(near for found in searches for _, near in found)])
        true = None if self.exact is None else self.exact.scores(Q, together)
        coded = [view.scores(Q, together) for view in self.views]

        def listed(near: np.ndarray, q: int) -> list[int]:
            return [row for row in near[q].tolist() if row not in (-1, rows[q])][: self.k]

        return [
            Answer(
                listed(exact[0], q) if exact else None,
                [[listed(near, q) for _, near in found] for found in searches],
                {} if true is None else _by_row(together[q], true[q]),
                [  # the search's own scores come last
                    _by_row(together[q], scores[q]) | _by_row(found[0][1][q], found[0][0][q])
                    for scores, found in zip(coded, searches, strict=True)
                ],
            )
            for q in range(len(Q))
        ]

    def lost(self, rows: np.ndarray) -> np.ndarray:
        """How many of the k exact neighbours of `rows` (b,) each index misses without rescoring, (indexes, b).

        A vector is not counted as its neighbour; of vectors at one distance any is right. For a collection of exact
        vectors.
        """
        Q, k, judge = self.vectors(rows), min(self.k, len(self) - 1), cast(IndexView, self.exact)
        exact, *coded = (without_self(v.index.search(Q, k + 1)[1], rows)[:, :k] for v in (judge, *self.views))
        asked = judge.source.engine_queries(Q)
        return np.stack([k - judge.source.hits(asked, exact, found) for found in coded])


def _by_row(rows: np.ndarray, scores: np.ndarray) -> dict[int, float]:
    return {r: float(f"{s:.7g}") for r, s in zip(rows.tolist(), scores.tolist(), strict=True) if r >= 0}


def open_collection(
    folder: str | os.PathLike[str],
    *,
    vectors: str | None = None,
    labels: str | None = None,
    texts: str | None = None,
    images: str | None = None,
    ids_column: str | None = None,
    compare: str | os.PathLike[str] | None = None,
    k: int = 10,
) -> Collection:
    """A saved index, what is known of its vectors, and a second index; options as of `nearkin explore`. ValueError if
    they do not fit."""
    rows = None if vectors is None else read_vectors(vectors)
    index = inputs.open_index(folder)
    other = None if compare is None else inputs.open_index(compare)
    ids = index.row_ids.astype(str).tolist()
    columns: dict[str, np.ndarray] = {}
    for role, path in (("label", labels), ("text", texts)):
        columns |= {} if path is None else read_values(path, ids, ids_column, role)
    pictures = () if images is None else read_pictures(images, ids)
    names = [Path(path).resolve().name for path in (folder, compare) if path is not None]
    names = names if len(set(names)) == len(names) else [str(folder), str(compare)]
    return Collection(index, rows, columns, pictures, other=other, names=names, k=k)
