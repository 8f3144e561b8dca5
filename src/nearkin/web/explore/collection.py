"""The rows that a page shows: labels, texts and pictures, one index over them or two, and neighbours in each."""

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from PIL import Image

from nearkin._check import check_integer
from nearkin._fields import counted
from nearkin._types import Record
from nearkin.data import read_column, read_vectors
from nearkin.data.files import locate, reading
from nearkin.data.formats.binary import read_array
from nearkin.data.tables import read_table
from nearkin.export.source import Source, exact_index
from nearkin.index import Index, identifiers
from nearkin.index.faiss_index import inverted_file
from nearkin.index.kept_vectors import KeptVectors
from nearkin.index.searching import Kept
from nearkin.metrics.retrieval import ExactNeighbours, without_own
from nearkin.pipeline.evaluate import exact_metric
from nearkin.pipeline.inputs import LEFT, Sides, decoded, ids_of, open_index, open_sides, places_of

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_SIZE = 160  # pixels of a picture's longer side on a page


class Pictures:
    """One picture a row, from an array (n, h, w[, 3]) or from files; every one is encoded again, as PNG.

    The smallest and largest number among an array's first thousand pictures are shown black and white.
    """

    def __init__(self, array: np.ndarray | None = None, files: Sequence[Path | None] = ()) -> None:
        self._array, self._files = array, files
        if array is not None:
            some = array[:1000]
            self._low = float(some.min())
            self._scale = 255 / max(float(some.max()) - self._low, 1e-12)

    def has(self, row: int) -> bool:
        return self._array is not None or self._files[row] is not None

    def png(self, row: int) -> bytes:
        """The picture of a row; ValueError for a file that is none."""
        buffer = io.BytesIO()
        if self._array is not None:
            pixels = (self._array[row].astype(np.float64) - self._low) * self._scale
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(buffer, format="PNG")
            return buffer.getvalue()
        file = self._files[row]
        try:
            with Image.open(str(file), formats=("PNG", "JPEG", "GIF", "WEBP", "BMP")) as image:
                image.thumbnail((_SIZE, _SIZE))
                image.convert("RGB").save(buffer, format="PNG")
        except (OSError, SyntaxError, Image.DecompressionBombError) as error:
            raise ValueError(f"{file} is no picture that can be read ({error})") from error
        return buffer.getvalue()


def read_values(path: str, ids: Sequence[str], ids_column: str | None, role: str) -> dict[str, np.ndarray]:
    """Columns (n,) of texts by their names: one in the order of the rows, called `role`, or with `ids_column` those of
    a table whose rows are found by that column, "" where one is missing. ValueError if it does not fit."""
    if ids_column is None:
        values = read_column(path).astype(str)
        if len(values) != len(ids):
            raise ValueError(
                f"{path} has {counted(len(values), 'value')} and the index {counted(len(ids), 'row')}; give one for "
                "each, or name its column of ids: --ids-column id"
            )
        return {role: values}
    table = read_table(path, header=True)
    found = places_of(np.array(ids), table.column(ids_column, "ids_column").values)
    if (found < 0).all():
        raise ValueError(f"no id of {path} ({ids_column}) is in the index, whose ids are such as {ids[0]!r}")
    others = {name: np.array([*map(str, c.values.tolist())]) for name, c in table.columns.items() if name != ids_column}
    columns = {name: np.where(found < 0, "", values[found]) for name, values in others.items()}
    return columns if len(columns) > 1 else dict(zip([role], columns.values(), strict=False))


def read_pictures(path: str, ids: Sequence[str]) -> Pictures:
    """Pictures of a folder, whose files are called as the ids (cat.jpg for cat), or an array (.npy, .npz:key).

    ValueError if no file is called so, or the array is not (n, h, w), (n, h, w, 3) or (n, h, w, 4).
    """
    if os.path.isdir(path):
        files = {file.stem: file for file in Path(path).iterdir() if file.suffix.lower() in _ENDINGS}
        found = [files.get(name) for name in ids]
        if not any(found):
            some = ", ".join(sorted(files)[:3]) or "no pictures"
            raise ValueError(f"no picture in {path} is called like an id ({ids[0]}.png ...); it holds {some}")
        return Pictures(files=found)
    where = locate(path)
    with reading(where):
        array = read_array(where) if where.suffix == ".npz" else np.load(where.path, mmap_mode="r")
    colours = array.ndim == 4 and array.shape[3] in (3, 4)
    if array.dtype.kind not in "uifb" or not (array.ndim == 3 or colours) or len(array) != len(ids):
        raise ValueError(
            f"{path} has {array.dtype} of shape {array.shape}; pictures must be ({len(ids)}, height, width) or "
            f"({len(ids)}, height, width, 3), one for each row"
        )
    return Pictures(array=array)


OVERSAMPLES = (2, 4, 8, 16, 32)


class IndexView:
    """An index whose ids are the collection's row numbers. `kept`: its exact rows or None; `rows` (n,): the
    collection's row at each position of this index, None if they are the same."""

    def __init__(self, name: str, index: Index, kept: KeptVectors | None, rows: np.ndarray | None = None) -> None:
        self.name = name
        parts = index.faiss_index, index.n_features, index.metric, index.quantizer
        self.index = Index(*parts, kept, rows, norms=index.norms)
        self.source = Source(self.index)

    @property
    def codec(self) -> str:
        """The code in words."""
        quantizer = self.index.quantizer
        lists = f", {self.index.n_probe} of {self.index.n_lists} lists searched" if self.index.n_lists else ""
        name = "exact vectors" if quantizer is None else type(quantizer).__name__
        return f"{name}, {self.index.bytes_per_vector} bytes a row{lists}"

    def distances(self, Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Distances (q, c), smaller is nearer, of queries Q (q, d) from the codes of `rows` (q, c); inf for row -1."""
        return self.source.distances(self.source.asked(Q), self.source.positions(rows), as_searched=True)

    def scores(self, Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The same as scores of `Index.search`, where a larger product is nearer."""
        far = self.distances(Q, rows)
        return far if self.index.metric in ("l2", "hamming") else -far

    def decoded(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (b, d) that the codes of `rows` (b,) decode to, at their norms if the index knows these."""
        return self.source.as_searched(self.source.positions(rows))[:, : self.source.d]

    def lists(self) -> np.ndarray | None:
        """The list (n,) of the inverted file that holds each row, None without one."""
        found = inverted_file(self.index.faiss_index)
        return None if found is None else Kept().places(found)[self.source.positions(np.arange(len(self.index))), 0]


@dataclass(frozen=True)
class Answer:
    """The neighbours of one query, as rows, nearest first: `exact` (k,) or None; `found[i][j]` (k,) of index i, at j =
    0 by its codes alone, then by each of `Collection.oversamples`; `true` and `coded[i]`: scores of these rows."""

    exact: list[int] | None
    found: list[list[list[int]]]
    true: dict[int, float]
    coded: list[dict[int, float]]

    def rows(self) -> set[int]:
        return {*(self.exact or ()), *(row for lists in self.found for some in lists for row in some)}


@dataclass
class Collection:
    """Rows 0, ..., n - 1 in the order of the first index; `open_collection` makes it.

    `texts` are columns (n,) by their names, such as "label" and "text", and `pictures` those of the rows, if there are
    any; `left` is the left side of an index that was trained with its towers.
    """

    views: list[IndexView]
    ids: np.ndarray  # as text
    kept: KeptVectors | None
    texts: Mapping[str, np.ndarray] = field(default_factory=dict)
    pictures: Pictures | None = None
    k: int = 10
    left: Sides | None = None

    def __post_init__(self) -> None:
        self.k = check_integer(self.k, "k", low=1)
        first = self.views[0].index
        if first.metric == "hamming" and self.kept is None:
            raise ValueError(
                "the index holds bits alone, from which a row's neighbours cannot be found; give its vectors "
                "(--vectors) or keep them (compress --keep-vectors)"
            )
        self.metric = exact_metric(first)
        self.oversamples = () if self.kept is None else OVERSAMPLES  # multiples of k candidates that a page can rescore
        self.exact = None if self.kept is None else IndexView("exact", exact_index(first), None)

    def __len__(self) -> int:
        return len(self.views[0].index)

    def about(self, row: int) -> Record:
        """What is known of a row; None for missing values."""
        known = {name: str(values[row]) for name, values in self.texts.items()}
        named = {"id": str(self.ids[row]), "label": known.pop("label", None), "text": known.pop("text", None)}
        return named | {"more": known, "picture": self.pictures is not None and self.pictures.has(row)}

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """The rows (b, d) as queries: exact where the collection has exact ones, else their decoded codes."""
        return self.views[0].decoded(rows) if self.kept is None else self.kept.rows(rows)

    def normalised(self, rows: np.ndarray) -> np.ndarray:
        """The rows as the metric compares them: of length 1 for "cosine"."""
        return self.views[0].source.as_compared(self.vectors(rows))

    def find(self, text: str, most: int = 30) -> list[int]:
        """Rows whose id is `text`, then those whose id begins with it, then those with it in id or any column."""
        text = text.strip().lower()
        if not text:
            return []
        names = np.char.lower(self.ids)
        hits = [names == text, np.char.startswith(names, text), np.char.find(names, text) >= 0]
        hits += [np.char.find(np.char.lower(column), text) >= 0 for column in self.texts.values()]
        return list(dict.fromkeys(row for hit in hits for row in np.flatnonzero(hit)[:most].tolist()))[:most]

    def answers(self, Q: np.ndarray, seen: Sequence[frozenset[int]] = ()) -> list[Answer]:
        """The neighbours of queries Q (q, d) without the rows in `seen[q]`, as `nearkin search --left-id` does."""
        seen = seen or [frozenset()] * len(Q)
        k = min(self.k + max(map(len, seen), default=0), len(self))
        depths = None, *self.oversamples  # the codes alone, then every place of the page's slider
        searches = [[view.index.search(Q, k, oversample=depth) for depth in depths] for view in self.views]
        exact = [] if self.exact is None else [self.exact.index.search(Q, k)[1]]
        # all rows of any list get all scores: the page compares what one search found with what another one missed
        together = np.hstack([*exact, *(rows for found in searches for _, rows in found)])
        true = None if self.exact is None else self.exact.scores(Q, together)
        coded = [view.scores(Q, together) for view in self.views]

        def listed(rows: np.ndarray, q: int) -> list[int]:
            return [row for row in rows[q].tolist() if row >= 0 and row not in seen[q]][: self.k]

        return [
            Answer(
                listed(exact[0], q) if exact else None,
                [[listed(rows, q) for _, rows in found] for found in searches],
                {} if true is None else _by_row(together[q], true[q]),
                [  # the search's own scores come last: a fast scan rounds them
                    _by_row(together[q], scores[q]) | _by_row(found[0][1][q], found[0][0][q])
                    for scores, found in zip(coded, searches, strict=True)
                ],
            )
            for q in range(len(Q))
        ]

    def answers_of_rows(self, rows: np.ndarray) -> list[Answer]:
        """The neighbours of `rows` (b,) among the other rows."""
        return self.answers(self.vectors(rows), [frozenset([row]) for row in rows.tolist()])

    def lost(self, rows: np.ndarray) -> np.ndarray:
        """How many of the k exact neighbours of `rows` (b,) each index misses by its codes alone, (indexes, b).

        A row is not counted as its neighbour; of rows at one distance any is right. For a collection of exact rows.
        """
        Q, k, judge = self.vectors(rows), min(self.k, len(self) - 1), cast(IndexView, self.exact)
        found = [without_own(view.index.search(Q, k + 1)[1], rows)[:, :k] for view in (judge, *self.views)]
        tied = np.ones(len(rows), bool)  # a gather of 2 k rows for each, small next to the search
        exact = ExactNeighbours(found[0], tied, lambda some, ids: judge.distances(Q[some], ids), Q.shape[1])
        return np.stack([np.rint(k - k * exact.recall(some)) for some in found[1:]])


def _by_row(rows: np.ndarray, scores: np.ndarray) -> dict[int, float]:
    return {r: float(f"{s:.7g}") for r, s in zip(rows.tolist(), scores.tolist(), strict=True) if r >= 0}


def open_collection(
    folder: str | os.PathLike,
    *,
    vectors: str | None = None,
    labels: str | None = None,
    texts: str | None = None,
    images: str | None = None,
    ids_column: str | None = None,
    compare: str | os.PathLike | None = None,
    k: int = 10,
) -> Collection:
    """A saved index, what is known of its rows, and a second index; options as of `nearkin explore`. ValueError if they
    do not fit."""
    rows = None if vectors is None else read_vectors(vectors)
    index = open_index(folder)
    other = None if compare is None else open_index(compare)
    ids = ids_of(index).astype(str).tolist()
    columns: dict[str, np.ndarray] = {}
    for role, path in (("label", labels), ("text", texts)):
        columns |= {} if path is None else read_values(path, ids, ids_column, role)
    pictures = None if images is None else read_pictures(images, ids)
    names = [Path(path).resolve().name for path in (folder, compare) if path is not None]
    names = names if len(set(names)) == len(names) else [str(folder), str(compare)]
    left = open_sides(folder) if (Path(folder) / LEFT).is_file() else None
    return collect_rows(index, rows, columns, pictures, other=other, names=names, k=k, left=left)


def collect_rows(
    index: Index,
    vectors: np.ndarray | None = None,
    texts: Mapping[str, np.ndarray] | None = None,
    pictures: Pictures | None = None,
    *,
    other: Index | None = None,
    names: Sequence[str] = ("index", "other"),
    k: int = 10,
    left: Sides | None = None,
) -> Collection:
    """The rows of an index; `vectors` (n, d) are the exact ones where it keeps none, `other` is compared with it.

    ValueError for an index without rows, and for vectors of another shape.
    """
    if not len(index):
        raise ValueError("the index has no rows; add some first")
    if vectors is not None and vectors.shape != (len(index), index.n_features):
        raise ValueError(
            f"vectors have shape {vectors.shape}, the index has {(len(index), index.n_features)}; give the vectors it "
            "was made of, in their order"
        )
    if vectors is None and index.kept is None and index.quantizer is None:
        vectors = decoded(index)  # an exact index holds the rows themselves
    kept = index.kept if vectors is None else KeptVectors([vectors])
    views = [IndexView(names[0], index, kept)]
    if other is not None:
        views.append(_second(names[1], other, index, kept))
    return Collection(views, ids_of(index).astype(str), kept, texts or {}, pictures, k, left)


def _second(name: str, index: Index, first: Index, kept: KeptVectors | None) -> IndexView:
    """Another index over the rows of the first, known by their ids; ValueError where rows or distances differ."""
    rows = identifiers.positions(first.ids, len(first), ids_of(index))
    if len(index) != len(first) or (rows < 0).any() or index.n_features != first.n_features:
        raise ValueError(f"{name} holds other rows than the first index; compare indexes of the same vectors and ids")
    if exact_metric(index) != exact_metric(first):
        raise ValueError(f"{name} has metric {index.metric!r}, the first index {first.metric!r}; compare equal ones")
    if kept is not None:
        kept = KeptVectors(kept.blocks, (np.arange(len(kept)) if kept.order is None else kept.order)[rows])
    return IndexView(name, index, kept, rows)
