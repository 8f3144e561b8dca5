"""The rows that a page shows: names, exact vectors, one index over them or two, and an item's neighbours in each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nearkin._check import check_integer
from nearkin._types import Record
from nearkin.index import Index, identifiers
from nearkin.index.rescoring import KeptVectors, normalised, rescore
from nearkin.metrics.neighbours import ExactNeighbours, exact_distances, ties
from nearkin.pipeline.left_side import LeftSide
from nearkin.web.explore.beside import Pictures
from nearkin.web.explore.coded import Coded

OVERSAMPLES = (2, 4, 8, 16, 32)
_BATCH = 8_192  # rows copied or decoded at a time


@dataclass(frozen=True)
class Beside:
    """What is known of n rows beside their vectors; each part may be missing."""

    labels: np.ndarray | None = None
    texts: np.ndarray | None = None
    pictures: Pictures | None = None


@dataclass(frozen=True)
class Answer:
    """The neighbours of one query, nearest first, as rows.

    `exact` (k,) or None without exact rows; `found[i][j]` (k,) what index i finds, at j = 0 by its codes alone and then
    with each of `Collection.oversamples`. `true` and `coded[i]` are the scores of all rows that occur.
    """

    exact: list[int] | None
    found: list[list[list[int]]]
    true: dict[int, float]
    coded: list[dict[int, float]]

    def rows(self) -> set[int]:
        """All rows that occur."""
        return {*(self.exact or ()), *(row for lists in self.found for some in lists for row in some)}

    def record(self) -> Record:
        """As the page reads it."""
        return {"exact": self.exact, "found": self.found, "true": self.true, "coded": self.coded}


@dataclass
class Collection:
    """Rows 0, ..., n - 1 in the order of the first index; `open_collection` makes it.

    `left` are those who ask, where the index was trained together with them.
    """

    coded: list[Coded]
    ids: np.ndarray | None
    kept: KeptVectors | None
    beside: Beside = field(default_factory=Beside)
    k: int = 10
    left: LeftSide | None = None

    def __post_init__(self) -> None:
        self.k = check_integer(self.k, "k", low=1)
        first = self.coded[0].index
        if first.metric == "hamming" and self.kept is None:
            raise ValueError(
                "the index has bits alone, which cannot be asked for a row's neighbours; give its vectors (--vectors) "
                "or keep them (compress --keep-vectors)"
            )
        self.metric = "l2" if first.metric == "hamming" else first.metric
        self.exact = None if self.kept is None else self._exact_index(self.kept)

    def __len__(self) -> int:
        return len(self.coded[0].index)

    @property
    def oversamples(self) -> tuple[int, ...]:
        """The multiples of k candidates that a page can rescore."""
        return () if self.kept is None else OVERSAMPLES

    def name(self, row: int) -> str:
        """The id of a row, as text."""
        return str(row if self.ids is None else self.ids[row])

    def about(self, row: int) -> Record:
        """What a page shows of a row."""
        labels, texts, pictures = self.beside.labels, self.beside.texts, self.beside.pictures
        return {
            "id": self.name(row),
            "label": None if labels is None else str(labels[row]),
            "text": None if texts is None else str(texts[row]),
            "picture": pictures is not None and pictures.has(row),
        }

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """The rows (b, d) as they are asked: exact where there are exact ones, else what the codes stand for."""
        return self.coded[0].decoded(rows) if self.kept is None else self.kept.rows(rows)

    def find(self, text: str, most: int = 30) -> list[int]:
        """Rows whose id is `text`, then those whose id begins with it, then those with it in id, label or text."""
        text = text.strip().lower()
        if not text:
            return []
        ids = np.arange(len(self)) if self.ids is None else self.ids
        names = np.char.lower(ids.astype(str))
        hits = [names == text, np.char.startswith(names, text), np.char.find(names, text) >= 0]
        words = [column for column in (self.beside.texts, self.beside.labels) if column is not None]
        hits += [np.char.find(np.char.lower(column), text) >= 0 for column in words]
        return list(dict.fromkeys(row for hit in hits for row in np.flatnonzero(hit)[:most].tolist()))[:most]

    def answers(self, Q: np.ndarray, seen: Sequence[frozenset[int]] = ()) -> list[Answer]:
        """The neighbours of queries Q (q, d) without the rows in `seen[q]`, as `nearkin search --left-id` does."""
        seen = seen or [frozenset()] * len(Q)
        k = min(self.k + max(map(len, seen), default=0), len(self))
        depths = (None, *self.oversamples)
        searches = [[coded.search(Q, k, depth) for depth in depths] for coded in self.coded]
        exact = self.neighbours(Q, k)
        lists = [rows for found in searches for _, rows in found]
        together = np.hstack(lists if exact is None else [exact, *lists])
        true = None if self.kept is None else self._true(Q, together, self.kept)
        coded = [one.scores(Q, together) for one in self.coded]
        for scores, found in zip(coded, searches, strict=True):
            _put(scores, together, *found[0])
        return [
            Answer(
                None if exact is None else self._listed(exact[q], seen[q]),
                [[self._listed(rows[q], seen[q]) for _, rows in found] for found in searches],
                {} if true is None else _scores(together[q], true[q]),
                [_scores(together[q], scores[q]) for scores in coded],
            )
            for q in range(len(Q))
        ]

    def answers_of_rows(self, rows: np.ndarray) -> list[Answer]:
        """The neighbours of `rows` (b,) among the other rows."""
        return self.answers(self.vectors(rows), [frozenset([row]) for row in rows.tolist()])

    def neighbours(self, Q: np.ndarray, k: int) -> np.ndarray | None:
        """The exact neighbours (q, k) of queries Q (q, d), None without exact rows."""
        return None if self.exact is None else self.exact.search(Q, k)[1]

    def _listed(self, rows: np.ndarray, seen: frozenset[int]) -> list[int]:
        return [row for row in rows.tolist() if row >= 0 and row not in seen][: self.k]

    def lost(self, rows: np.ndarray) -> np.ndarray:
        """How many of the k exact neighbours of `rows` (b,) each index misses by its codes alone, (indexes, b).

        A row is no neighbour of its own. nan without exact rows.
        """
        Q, k = self.vectors(rows), min(self.k, len(self) - 1)
        if self.exact is None or self.kept is None:
            return np.full((len(self.coded), len(rows)), np.nan)
        exact = self._settled(Q, rows, k, self.exact, self.kept)
        found = [_others(coded.search(Q, k + 1)[1], rows)[:, :k] for coded in self.coded]
        return np.stack([missing(exact.beside(some), some) for some in found])

    def _settled(self, Q: np.ndarray, own: np.ndarray, k: int, exact: Index, kept: KeptVectors) -> ExactNeighbours:
        """The exact neighbours (q, k) of queries Q (q, d) without the rows `own` (q,), with what is at one distance."""
        scores, ids = exact.search(Q, min(k + 2, len(self)))
        asked, metric = self._asked(Q), "l2" if self.metric == "l2" else "ip"

        def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
            rows = self._asked(kept.rows(np.maximum(ids, 0).ravel()))
            return exact_distances(rows.reshape(*ids.shape, -1), asked[numbers], metric, ids >= 0)

        norm = float(np.einsum("qd,qd->q", asked, asked).max(initial=0))  # the queries are rows
        return ExactNeighbours(_others(ids, own)[:, :k], ties(scores, asked, norm), distances, asked.shape[1])

    def _true(self, Q: np.ndarray, rows: np.ndarray, kept: KeptVectors) -> np.ndarray:
        """Exact scores (q, c) in the order of `rows` (q, c)."""
        scores, order = rescore(self._asked(Q), rows, kept, rows.shape[1], self.metric)
        found = np.full(rows.shape, np.nan)
        for q in range(len(Q)):
            by_row = dict(zip(order[q].tolist(), scores[q].tolist(), strict=True))
            found[q] = [by_row[row] for row in rows[q].tolist()]
        return found

    def _asked(self, Q: np.ndarray) -> np.ndarray:
        return normalised(Q) if self.metric == "cosine" else Q

    def _exact_index(self, kept: KeptVectors) -> Index:
        index = Index.empty(self.coded[0].index.n_features, None, self.metric)
        for first in range(0, len(kept), _BATCH):
            index.add(kept.rows(np.arange(first, min(first + _BATCH, len(kept)))))
        return index


def _others(ids: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Rows (q, k - 1) of `ids` (q, k) without `own` (q,), in their order; without the last where `own` is not there."""
    drop = ids == own[:, None]
    drop[~drop.any(axis=1), -1] = True
    return ids[~drop].reshape(len(ids), -1)


def missing(exact: np.ndarray, found: np.ndarray) -> np.ndarray:
    """How many of each row of `exact` (q, k) are not in that row of `found` (q, k')."""
    return (~(exact[:, :, None] == found[:, None, :]).any(axis=2)).sum(axis=1).astype(float)


def second(name: str, index: Index, first: Index, kept: KeptVectors | None) -> Coded:
    """Another index over the rows of the first, known by their ids; ValueError where rows or distances differ."""
    own = np.arange(len(index)) if index.ids is None else index.ids
    rows = identifiers.positions(first.ids, len(first), own)
    if len(index) != len(first) or (rows < 0).any() or index.n_features != first.n_features:
        raise ValueError(f"{name} holds other rows than the first index; compare indexes of the same vectors and ids")
    if {"hamming": "l2"}.get(index.metric, index.metric) != {"hamming": "l2"}.get(first.metric, first.metric):
        raise ValueError(f"{name} has metric {index.metric!r}, the first index {first.metric!r}; compare equal ones")
    return Coded(name, index, None if kept is None else KeptVectors(kept.blocks, _order(kept)[rows]), rows)


def _order(kept: KeptVectors) -> np.ndarray:
    return np.arange(len(kept)) if kept.order is None else kept.order


def _put(scores: np.ndarray, rows: np.ndarray, found: np.ndarray, at: np.ndarray) -> None:
    """Write the scores that the search itself gave: fast scan rounds them."""
    for q in range(len(rows)):
        given = dict(zip(at[q].tolist(), found[q].tolist(), strict=True))
        scores[q] = [given.get(row, score) for row, score in zip(rows[q].tolist(), scores[q].tolist(), strict=True)]


def _scores(rows: np.ndarray, scores: np.ndarray) -> dict[int, float]:
    return {r: float(f"{s:.7g}") for r, s in zip(rows.tolist(), scores.tolist(), strict=True) if r >= 0}
