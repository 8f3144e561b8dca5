"""What to offer to whom: the best unseen rights of many lefts, a block at a time."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import faiss
import numpy as np

from nearkin._check import check_integer
from nearkin._types import ArrayLike, Record
from nearkin.metrics.ranking import recommend
from nearkin.pipeline.hits import Write, check_hits_path, writing_hits
from nearkin.pipeline.recommend.sides import Sides, open_sides, with_histories
from nearkin.pipeline.steps import Steps
from nearkin.records import Interactions

BLOCK = 16_384  # lefts answered and written at a time
Answer = tuple[np.ndarray, np.ndarray, np.ndarray]  # who asks (b,), scores (b, k), ids (b, k)


class Table(NamedTuple):
    """Where answers go: a file, None to return them; its columns, and whether formulas in it are made text."""

    out: str | os.PathLike | None
    columns: tuple[str, ...]
    formulas_as_text: bool = False

    def writing(self, keep: Write) -> AbstractContextManager[Write]:
        """What takes block after block: the file, or `keep`."""
        if self.out is None:
            return nullcontext(keep)
        return writing_hits(self.out, self.columns, formulas_as_text=self.formulas_as_text)


def recommend_folder(
    folder: str | os.PathLike,
    *,
    out: str | os.PathLike | None = None,
    left_ids: ArrayLike | None = None,
    history: Interactions | None = None,
    k: int = 10,
    candidates: ArrayLike | None = None,
    with_seen: bool = False,
    index: str | os.PathLike | None = None,
    formulas_as_text: bool = False,
    steps: Steps | None = None,
) -> tuple[Record, Answer | None]:
    """The k best rights for left ids (default: everybody), seen pairs left out; to the table `out`, or returned.

    `history` are pairs of new left entities, which then ask; `candidates` the right ids that may be recommended;
    `index` the folder of an index of the right side that ranks in its place. The table's columns are called as the
    file that was embedded calls them. Returns the record to print, and the answers unless there is a table.
    ValueError before any work for unknown ids and for a folder without two sides.
    """
    steps, k = steps or Steps(), check_integer(k, "k", low=1)
    if out is not None:
        check_hits_path(out)
    with steps.step("load"):
        sides = open_sides(folder, index)
        if history is not None:
            sides = with_histories(sides, folder, history)
        rows = np.arange(len(sides.left_ids)) if left_ids is None else sides.left_rows(left_ids)
        allowed = None if candidates is None else sides.right_rows(candidates)
    columns = answer_columns(sides.words.left, sides.words.right)
    ask = _asking(sides, k, allowed, with_seen)
    table = Table(out, columns, formulas_as_text)
    answers = answer_blocks(rows, ask, table, steps, "recommend")
    record = {
        "folder": str(folder), "out": None if out is None else str(out), "columns": list(columns), "queries": len(rows),
        "k": k, "with_seen": with_seen, "candidates": None if allowed is None else len(allowed),
        "index": None if index is None else str(index), "seconds": steps.seconds,
        "per_second": len(rows) / max(steps.seconds["recommend"], 1e-9),
    }  # fmt: skip
    return record, answers


def _asking(sides: Sides, k: int, allowed: np.ndarray | None, with_seen: bool) -> Callable[[np.ndarray], Answer]:
    right = sides.right
    if allowed is not None and isinstance(right, faiss.Index):
        right = sides.vectors()  # codes cannot be searched in part; what they stand for can

    def ask(rows: np.ndarray) -> Answer:
        seen = None if with_seen else sides.seen
        scores, numbers = recommend(sides.left, right, k, seen=seen, rows=rows, candidates=allowed)
        return sides.left_ids[rows], scores, sides.right_ids[numbers]

    return ask


def answer_blocks(
    rows: np.ndarray,
    ask: Callable[[np.ndarray], Answer],
    table: Table,
    steps: Steps,
    step: str,
) -> Answer | None:
    """Ask for block after block of rows and write the answers to the table; without a file, return them all."""
    kept: list[Answer] = []
    keep: Write = lambda *block: kept.append(block)  # noqa: E731
    with steps.step(step) as callback, table.writing(keep) as write:
        for block, done in _blocks(rows):
            write(*ask(block))
            callback(done, {"total": len(rows)})
    if table.out is not None:
        return None
    who, scores, ids = (np.concatenate(part) for part in zip(*kept, strict=True))
    return who, scores, ids


def _blocks(rows: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    for first in range(0, len(rows), BLOCK):
        yield rows[first : first + BLOCK], min(first + BLOCK, len(rows))


def answer_columns(asks: str, found: str) -> tuple[str, str, str, str]:
    """The columns of a table of answers in the file's words; plain ones where these are not four different names."""
    columns = (asks, "rank", found, "score")
    return columns if len(set(columns)) == len(columns) else ("query", "rank", "id", "score")


def as_records(answers: Answer, columns: Mapping[int, str] | list[str]) -> list[Record]:
    """Answers as JSON has them: one entry for each who asks, without empty places."""
    entries = []
    for who, scores, ids in zip(*answers, strict=True):
        found = np.isfinite(scores)
        entries.append({columns[0]: who, "ids": ids[found].tolist(), "scores": scores[found].tolist()})
    return entries
