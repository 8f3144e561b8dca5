"""What a map shows of each row: columns of places and of colours, some of them measured in the background."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from nearkin._types import Record
from nearkin.index import Index
from nearkin.web.explore.collection import BATCH, Collection

MOST = 100_000  # rows on a map; of more, so many are drawn at random
WORST = 100
SAMPLE = 3_000  # rows that t-SNE lays out; it takes half a minute on two cores
_CATEGORIES = 20  # labels with their own colours
_SEARCHED = 256  # rows searched between two looks at whether to stop
_FIT = 20_000  # rows by which the principal axes are found
_AXES = 50  # principal axes that t-SNE sees: the usual number, van der Maaten and Hinton (2008), Section 4.2


@dataclass
class Column:
    """A column (m, 2) of places or (m,) of values, nan where not measured; `names` are those of categories 0, 1, ..."""

    title: str
    values: np.ndarray
    note: str = ""
    names: list[str] | None = None
    version: int = 0

    def record(self, name: str) -> Record:
        """What a page must know before it reads the values."""
        return {"name": name, "title": self.title, "note": self.note, "names": self.names, "version": self.version}


class Columns:
    """Columns of the rows on the map, `rows` (m,); `start` measures the slow ones in a thread, `run` at once."""

    def __init__(self, collection: Collection, most: int = MOST) -> None:
        n = len(collection)
        self.collection, self.k = collection, min(collection.k, n - 1)
        self.rows = np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        self.layouts: dict[str, Column] = {}
        self.colours: dict[str, Column] = {}
        self.busy = ""
        self._closed = threading.Event()
        if collection.views[0].index.n_features == 2:
            self.layouts["map"] = Column("the embedding itself", collection.vectors(self.rows))
        else:
            note = "Two principal axes of the rows, those of largest variance."
            self.layouts["pca"] = Column("principal axes", principal(collection, self.rows), note)
        if collection.metadata.labels is not None:
            self.colours["label"] = _categories(collection.metadata.labels, self.rows)
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

    def run(self, layout: bool = True) -> None:
        """Measure all columns, the slowest last; without `layout` t-SNE is left out."""
        for step in self._steps(layout):
            self.busy = step
            if self._closed.is_set():
                return
        self.busy = ""

    def column(self, name: str) -> Column | None:
        """A column by its name; None for an unknown name."""
        return self.layouts.get(name) or self.colours.get(name)

    def worst(self) -> list[int]:
        """The rows that lose most neighbours, of equal ones those with the largest error; at most a hundred."""
        columns = [self.colours.get(name) for name in ("error0", "lost0")]
        keys = [-np.nan_to_num(column.values, nan=-1) for column in columns if column is not None]
        return self.rows[np.lexsort(keys)][:WORST].tolist() if keys else []

    def kept(self) -> list[Record]:
        """For each index, the share of k exact neighbours that its codes keep, and for how many rows it was measured.

        None where nothing is measured: without exact rows, or if k neighbours are all other rows.
        """
        lost = [self.colours.get(f"lost{number}") for number in range(len(self.collection.views))]
        known = [np.empty(0) if column is None else column.values[~np.isnan(column.values)] for column in lost]
        return [{"rows": len(v), "recall": 1 - float(v.mean()) / self.k if len(v) else None} for v in known]

    def _steps(self, layout: bool) -> Iterator[str]:
        """Do the slow work in steps; yields what comes next."""
        if self.collection.exact is not None:
            yield "measuring quantization errors"
            self._errors()
            if self.k < len(self.collection) - 1:  # else a search returns all rows
                yield from self._lost()
        if layout and "map" not in self.layouts and len(self.rows) > 3:
            yield "laying out neighbours (t-SNE)"
            note = "t-SNE: neighbours lie together; distances between groups say little."
            if len(self.rows) > SAMPLE:
                note += f" {SAMPLE:,} rows drawn at random; each other row at the mean of the three nearest of them."
            self.layouts["neighbours"] = Column("neighbours", neighbour_preserving(self.collection, self.rows), note)

    def _errors(self) -> None:
        note = "Squared distance between a row and its decoded code."
        for number, view in enumerate(self.collection.views):
            if view.index.metric != "hamming":
                values = np.empty(len(self.rows))
                for some in _batches(np.arange(len(self.rows)), BATCH):
                    rows = self.rows[some]
                    values[some] = ((self.collection.normalised(rows) - view.decoded(rows)) ** 2).sum(axis=1)
                self.colours[f"error{number}"] = Column(self._of("quantization error", number), values, note)

    def _lost(self) -> Iterator[str]:
        views, m = self.collection.views, len(self.rows)
        note = f"How many of its {self.k} exact neighbours, other rows, a row loses by the codes alone."
        columns = [Column(self._of("neighbours lost", n), np.full(m, np.nan), note) for n in range(len(views))]
        self.colours |= {f"lost{number}": column for number, column in enumerate(columns)}
        # in random order, so that the share so far is an estimate of the whole
        for done, some in enumerate(_batches(np.random.default_rng(1).permutation(m), _SEARCHED)):
            yield f"comparing neighbours: {done * _SEARCHED:,} of {m:,} rows"
            for column, lost in zip(columns, self.collection.lost(self.rows[some]), strict=True):
                column.values[some] = lost
                column.version += 1
        if len(columns) == 2:
            note = f"Neighbours lost by {views[1].name} less those lost by {views[0].name}."
            values = columns[1].values - columns[0].values
            self.colours["more"] = Column("lost more by the second", values, note)

    def _of(self, what: str, number: int) -> str:
        return what if len(self.collection.views) == 1 else f"{what}, {self.collection.views[number].name}"


def _categories(labels: np.ndarray, rows: np.ndarray) -> Column:
    """The most frequent labels as categories, numbers in their order, and one category of all others."""
    names, counts = np.unique(labels, return_counts=True)
    common = names[np.argsort(-counts, kind="stable")[: _CATEGORIES - (len(names) > _CATEGORIES)]].tolist()
    common.sort(key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))
    place = {name: at for at, name in enumerate(common)}
    values = np.array([place.get(name, len(common)) for name in labels[rows].tolist()], float)
    others = [f"{len(names) - len(common)} others"] if len(names) > len(common) else []
    return Column("label", values, names=[*common, *others])


def principal(collection: Collection, rows: np.ndarray) -> np.ndarray:
    """The two leading principal components of `rows` (m,), (m, 2); the second one 0 if there is none."""
    X = collection.normalised(rows if len(rows) <= _FIT else np.random.default_rng(0).choice(rows, _FIT, replace=False))
    model = PCA(n_components=min(2, *X.shape), svd_solver="randomized", random_state=0).fit(X)
    placed = np.concatenate([model.transform(collection.normalised(some)) for some in _batches(rows, BATCH)])
    return np.pad(placed, ((0, 0), (0, 2 - placed.shape[1])))


def neighbour_preserving(collection: Collection, rows: np.ndarray) -> np.ndarray:
    """`rows` (m,) by scikit-learn's t-SNE, (m, 2).

    Of more than `SAMPLE` rows so many are drawn at random and laid out; each other one is put at the mean, weighted by
    1 / distance, of the three nearest of them.
    """
    rng = np.random.default_rng(0)
    drawn = np.arange(len(rows)) if len(rows) <= SAMPLE else np.sort(rng.choice(len(rows), SAMPLE, replace=False))
    X = collection.normalised(rows[drawn])
    reduced = PCA(n_components=_AXES, random_state=0).fit_transform(X) if min(X.shape) > _AXES else X
    perplexity = min(30.0, max(2.0, (len(X) - 1) / 3))
    made = TSNE(init="pca", perplexity=perplexity, random_state=0, n_jobs=1).fit_transform(reduced)
    if len(drawn) == len(rows):
        return made
    index, places = Index.build(X), np.empty((len(rows), 2))
    for some in _batches(np.arange(len(rows)), BATCH):
        far, near = index.search(collection.normalised(rows[some]), 3)
        weight = 1 / np.sqrt(np.maximum(far, 1e-12))
        places[some] = (made[near] * weight[:, :, None]).sum(axis=1) / weight.sum(axis=1)[:, None]
    places[drawn] = made
    return places


def _batches(numbers: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return (numbers[first : first + size] for first in range(0, len(numbers), size))
