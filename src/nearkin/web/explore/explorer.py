"""What a page is told: about the rows and columns as far as they are measured, about one item, about found items."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nearkin._types import Record
from nearkin.pipeline.left_side import find_ids
from nearkin.web.explore.collection import Answer, Collection
from nearkin.web.explore.measures import Measures
from nearkin.web.explore.swept import Swept


@dataclass
class Explorer:
    """A collection, its measures, and a sweep's figures or None."""

    title: str
    collection: Collection
    measures: Measures
    swept: Swept | None = None

    def about(self) -> Record:
        """What the page shows before a click."""
        collection, measures = self.collection, self.measures
        return {
            "title": self.title,
            "rows": len(collection),
            "shown": len(measures.rows),
            "k": min(collection.k, len(collection) - 1),
            "metric": collection.metric,
            "exact": collection.exact is not None,
            "oversamples": list(collection.oversamples),
            "indexes": [
                {"name": coded.name, "what": coded.what, "metric": coded.index.metric, **kept}
                for coded, kept in zip(collection.coded, measures.kept(), strict=True)
            ],
            "layouts": [column.record(name) for name, column in list(measures.layouts.items())],
            "colours": [column.record(name) for name, column in list(measures.colours.items())],
            "busy": measures.busy,
            "left": None if collection.left is None else len(collection.left.ids),
            "sweep": None if self.swept is None else self.swept.record(),
        }

    def item(self, row: int) -> Record:
        """The neighbours of a row among the others, and what is known of each; ValueError for a row that is none."""
        self.check(row)
        (answer,) = self.collection.answers_of_rows(np.array([row]))
        return self.answered(row, answer)

    def asked_by(self, name: str) -> Record:
        """The list of a left entity: its history, and what the index finds beyond it; ValueError for an unknown one."""
        left = self.collection.left
        if left is None:
            raise ValueError("this index has no left side; `nearkin train` makes one")
        (row,) = find_ids([name], left.ids)
        history = left.seen(row).tolist()
        (answer,) = self.collection.answers(left.vectors[row : row + 1], [frozenset(history)])
        return self.answered(-1, answer) | {"left": name, "history": [self.collection.about(row) for row in history]}

    def answered(self, row: int, answer: Answer) -> Record:
        """An answer with what is known of its rows."""
        return {"row": row, **answer.record(), "about": self.named({*answer.rows(), *([row] if row >= 0 else [])})}

    def named(self, rows: Iterable[int]) -> dict[int, Record]:
        """What is known of rows."""
        return {row: self.collection.about(row) for row in rows}

    def worst(self) -> list[Record]:
        """The worst rows, with what they lose and how far their codes lie."""
        place = {row: at for at, row in enumerate(self.measures.rows.tolist())}
        columns = {name: self.measures.colours.get(f"{name}0") for name in ("lost", "error")}
        return [
            {"row": row, **self.collection.about(row)}
            | {name: _number(column.values[place[row]]) for name, column in columns.items() if column is not None}
            for row in self.measures.worst()
        ]

    def column(self, name: str) -> bytes | None:
        """The values of a column as little-endian float32, those of "rows" as int32; None for a name that is none."""
        if name == "rows":
            return self.measures.rows.astype("<i4").tobytes()
        column = self.measures.column(name)
        return None if column is None else np.ascontiguousarray(column.values, "<f4").tobytes()

    def check(self, row: int) -> None:
        """ValueError for a row that is none."""
        if not 0 <= row < len(self.collection):
            raise ValueError(f"row is {row}; it must be at least 0 and below {len(self.collection)}")


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(f"{value:.6g}")
