"""What a map can show of each row: two columns of places, and columns of colours, filled in the background."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearkin._types import Record
from nearkin.web.explore.collection import Collection
from nearkin.web.explore.layout import SAMPLE, neighbour_preserving, principal

MOST = 100_000  # rows on a map; of more, so many are drawn at random
WORST = 100
_CATEGORIES = 20  # different labels with a colour of their own
_BATCH = 256  # rows searched between two looks at whether to stop


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


class Measures:
    """Columns of the rows on the map, `rows` (m,); `start` fills them in a thread, `run` at once."""

    def __init__(self, collection: Collection, most: int = MOST) -> None:
        n = len(collection)
        rng = np.random.default_rng(0)
        self.collection = collection
        self.rows = np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))
        self.layouts: dict[str, Column] = {}
        self.colours: dict[str, Column] = {}
        self.busy = ""
        self._stopped = threading.Event()
        self._place()
        self._label()
        self._lists()

    def start(self) -> None:
        """Fill the other columns in the background; the process may end before."""
        self.busy = "measuring"
        threading.Thread(target=self.run, daemon=True).start()

    def close(self) -> None:
        """End the background's work after its present step."""
        self._stopped.set()

    def run(self, layout: bool = True) -> None:
        """Fill all columns; `layout` False leaves t-SNE out."""
        steps: list[tuple[str, Callable[[], None]]] = [("measuring errors", self._errors), ("comparing", self._lost)]
        if layout and "map" not in self.layouts and len(self.rows) > 3:
            steps.insert(1, ("laying out neighbours", self._neighbours))
        for what, step in steps:
            self.busy = what
            if not self._stopped.is_set():
                step()
        self.busy = ""

    def column(self, name: str) -> Column | None:
        """A column by its name; None for a name that is none."""
        return self.layouts.get(name) or self.colours.get(name)

    def worst(self) -> list[int]:
        """The rows that lose most neighbours, of equal ones those with the largest error; at most a hundred."""
        lost, error = self.colours.get("lost0"), self.colours.get("error0")
        if lost is None and error is None:
            return []
        nothing = np.zeros(len(self.rows))
        keys = [nothing if column is None else np.nan_to_num(column.values, nan=-1) for column in (error, lost)]
        return self.rows[np.lexsort([-key for key in keys])][:WORST].tolist()

    def kept(self) -> list[Record]:
        """For each index, the share of k exact neighbours that its codes keep, and for how many rows it was measured.

        None where nothing is measured: without exact rows, or where k neighbours are all other rows.
        """
        found = []
        for number in range(len(self.collection.coded)):
            lost = self.colours.get(f"lost{number}")
            values = np.empty(0) if lost is None else lost.values[~np.isnan(lost.values)]
            k = min(self.collection.k, len(self.collection) - 1)
            found.append({"rows": len(values), "recall": 1 - float(values.mean()) / k if len(values) else None})
        return found

    def _place(self) -> None:
        flat = self.collection.coded[0].index.n_features == 2
        if flat:
            self.layouts["map"] = Column("the embedding itself", self.collection.vectors(self.rows))
            return
        note = "Two principal axes of the rows, those of largest variance."
        self.layouts["pca"] = Column("principal axes", principal(self.collection, self.rows), note)

    def _label(self) -> None:
        labels = self.collection.beside.labels
        if labels is None:
            return
        names, counts = np.unique(labels, return_counts=True)
        common = names[np.argsort(-counts, kind="stable")[: _CATEGORIES - (len(names) > _CATEGORIES)]].tolist()
        common.sort(key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))
        place = {name: at for at, name in enumerate(common)}
        values = np.array([place.get(name, len(common)) for name in labels[self.rows].tolist()], float)
        others = [f"{len(names) - len(common)} others"] if len(names) > len(common) else []
        self.colours["label"] = Column("label", values, names=[*common, *others])

    def _lists(self) -> None:
        for number, coded in enumerate(self.collection.coded):
            lists = coded.lists()
            if lists is not None:
                note = "Lists lie in different places of the scale; neighbours in it are not alike."
                self.colours[f"list{number}"] = Column(self._of("list", number), lists[self.rows].astype(float), note)

    def _errors(self) -> None:
        if self.collection.kept is None:
            return
        for number, coded in enumerate(self.collection.coded):
            if coded.index.metric == "hamming":
                continue
            values = np.empty(len(self.rows))
            for first in range(0, len(self.rows), 16 * _BATCH):
                some = self.rows[first : first + 16 * _BATCH]
                values[first : first + len(some)] = coded.errors(self.collection.vectors(some), some)
            note = "Squared distance between a row and what its code stands for."
            self.colours[f"error{number}"] = Column(self._of("quantization error", number), values, note)

    def _lost(self) -> None:
        k, m = self.collection.k, len(self.rows)
        if self.collection.exact is None or k >= len(self.collection) - 1:  # of so few rows a search returns all
            return
        note = f"How many of its {k} exact neighbours, other rows, a row loses by the codes alone."
        columns = [
            Column(self._of("neighbours lost", number), np.full(m, np.nan), note)
            for number in range(len(self.collection.coded))
        ]
        self.colours |= {f"lost{number}": column for number, column in enumerate(columns)}
        order = np.random.default_rng(1).permutation(m)  # in any order, so that the share so far is an honest one
        for first in range(0, m, _BATCH):
            if self._stopped.is_set():
                return
            some = order[first : first + _BATCH]
            for column, lost in zip(columns, self.collection.lost(self.rows[some]), strict=True):
                column.values[some] = lost
                column.version += 1
            self.busy = f"comparing neighbours: {min(first + _BATCH, m):,} of {m:,} rows"
        if len(columns) == 2:
            values = columns[1].values - columns[0].values
            note = f"Neighbours lost by {self.collection.coded[1].name} less those lost by the first index."
            self.colours["more"] = Column("lost more by the second", values, note)

    def _neighbours(self) -> None:
        self.busy = "laying out neighbours (t-SNE)"
        drawn = len(self.rows) > SAMPLE
        note = "t-SNE: neighbours lie together; distances between groups say little."
        if drawn:
            note += f" {SAMPLE:,} rows drawn at random; each other row at the mean of the three nearest of them."
        self.layouts["neighbours"] = Column("neighbours", neighbour_preserving(self.collection, self.rows), note)

    def _of(self, what: str, number: int) -> str:
        return what if len(self.collection.coded) == 1 else f"{what}, {self.collection.coded[number].name}"
