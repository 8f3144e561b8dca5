"""The table of answers that people take away: one line an answer, read by `nearkin embed` as it is."""

import csv
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from nearkin._storage import replacing
from nearkin.web.ask.items import Items
from nearkin.web.ask.questions import Form, Question

_ABOUT = ("rater", "time", "seconds", "reason", "question", "shown")


class AnswerTable:
    """Appended to with every answer; written anew after an undo. "Can't say" has no line: it orders nothing."""

    def __init__(self, path: Path, items: Items, form: Form) -> None:
        self._path, self._items, self._form = path, items, form

    def rewrite(self, answers: Iterable[tuple[Question, str]]) -> None:
        """Write the whole table, whole or not at all."""
        with replacing(self._path) as fresh, fresh.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*self._form.columns, *_ABOUT])
            writer.writerows(self._row(question, name) for question, name in answers if question.choice != -1)

    def append(self, question: Question, rater: str) -> None:
        """Add the line of one answer, on disk when this returns."""
        if question.choice == -1:
            return
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(self._row(question, rater))
            file.flush()
            os.fsync(file.fileno())

    def _row(self, question: Question, rater: str) -> list[object]:
        names = [self._items.ids[item] for item in self._form.line(question.shown, question.choice or 0)]
        when = datetime.fromtimestamp(question.time, UTC).isoformat(timespec="seconds")
        shown = " | ".join(self._items.ids[item] for item in question.shown)
        return [*names, rater, when, f"{question.seconds:.2f}", question.reason, question.number, shown]
