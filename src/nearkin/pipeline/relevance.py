"""An index judged by what people said of its answers, `--qrels`, against exact search."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from nearkin._fields import counted
from nearkin._types import Record
from nearkin.index.identifiers import positions
from nearkin.index.index import Index
from nearkin.metrics import graded as measures
from nearkin.pipeline.inputs import places_of
from nearkin.pipeline.run import Steps
from nearkin.records import Judgements

OVERSAMPLE = 4  # of the search by kept vectors, unless one is given
_UNKNOWN = 0.01  # share of judged ids that may be unknown


class Relevance(NamedTuple):
    """Judgements of rows that an index holds: positions (q,) of the judged queries, and grades (q, n or more).

    Columns from n on are judged rows that the index lacks: no answer can be one of them. `notes` say what is left out.
    """

    queries: np.ndarray
    grades: sp.csr_matrix
    notes: list[str]

    @classmethod
    def of(cls, judged: Judgements, query_ids: np.ndarray, row_ids: np.ndarray | None, n: int) -> "Relevance":
        """Join judgements with the ids of queries (q,) and of n rows, None for 0, 1, 2, ...; they are compared as text.

        ValueError if over 1 % of the judged queries or rows are unknown, and if no query has a relevant row.
        """
        notes: list[str] = []
        asked = _places(judged.queries, query_ids, "queries", "QUERIES", "--query-ids FILE", notes)
        own = np.arange(n) if row_ids is None else row_ids
        rows = _places(judged.rows, own, "rows", "the index", "compress --ids FILE", notes)
        keep = (asked >= 0) & (judged.grades > 0)
        columns = rows[keep]
        unknown = np.unique(judged.rows[keep][columns < 0], return_inverse=True)[1]
        columns[columns < 0] = n + unknown
        queries, numbers = np.unique(asked[keep], return_inverse=True)
        left_out = len(np.unique(asked[asked >= 0])) - len(queries)
        if not len(queries):
            raise ValueError("qrels have no query with a grade above 0; without one there is nothing to find")
        if left_out:
            notes.append(f"{counted(left_out, 'judged query', 'judged queries')} without a relevant row left out")
        shape = len(queries), n + int(unknown.max(initial=-1)) + 1
        return cls(queries, sp.csr_matrix((judged.grades[keep], (numbers, columns)), shape), notes)


def _places(judged: np.ndarray, ids: np.ndarray, what: str, where: str, option: str, notes: list[str]) -> np.ndarray:
    """Positions (m,) of judged ids among `ids`, -1 for an unknown one; `notes` count those."""
    found, names = places_of(judged, ids), np.unique(judged)
    unknown = np.unique(judged[found < 0]).tolist()
    if len(unknown) > _UNKNOWN * len(names):
        raise ValueError(
            f"qrels name {len(unknown):,} {what} of {len(names):,} that {where} lacks, the first is {unknown[0]!r}; "
            f"known are {', '.join(map(str, ids[:3].tolist()))}: give qrels of these ids, or the ids with {option}"
        )
    if unknown:
        notes.append(f"{len(unknown):,} judged {what} that {where} lacks count as not found")
    return found


def judge_relevance(
    index: Index, Q: np.ndarray, judged: Relevance, exact: np.ndarray | None, oversample: int | None, steps: Steps
) -> Record:
    """NDCG@10, Recall@100 and MRR@10 of the judged queries Q (q, d), by each search that the index allows. With `exact`
    (q, K), rows of the exact neighbours, each search has the "change" from those: mean and 95 % interval."""
    answers: list[tuple[str, int | None, np.ndarray]] = []
    if exact is not None and index.quantizer is not None:
        answers.append(("exact", None, exact))
    times = (oversample or OVERSAMPLE,) if index.kept is not None and index.quantizer is not None else ()
    for each in (None, *times):
        name = "exact" if index.quantizer is None else "by code alone" if each is None else "rescored by kept vectors"
        with steps.step("search") as callback:
            found = index.search(Q, min(measures.DEPTH, len(index)), oversample=each, callback=callback)[1]
        answers.append((name, each, positions(index.ids, len(index), found)))
    searches, best = [], None
    for name, each, found in answers:
        values = measures.graded_values(found, judged.grades)
        row: Record = {"search": name, "oversample": each} | {at: float(own.mean()) for at, own in values.items()}
        if best is not None:
            row["change"] = {at: measures.paired_interval(values[at], best[at])._asdict() for at in values}
        best = values if name == "exact" else best
        searches.append(row)
    return {"relevance": {"queries": len(Q), "notes": judged.notes, "searches": searches}}


def relevance_rows(record: Record) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of a table of the searches that `judge_relevance` judged: a column each."""
    searches = record["searches"]
    names = [row["search"] + (f", {row['oversample']} × k" if row["oversample"] else "") for row in searches]
    rows = [[name, *(row[name] for row in searches)] for name in (measures.NDCG, measures.RECALL, measures.MRR)]
    if any("change" in row for row in searches):
        parts = {"mean": f"change of {measures.NDCG}", "low": "at least (97.5 %)", "high": "at most (97.5 %)"}
        for part, name in parts.items():
            changes = [row["change"][measures.NDCG][part] if "change" in row else None for row in searches]
            rows.append([name, *changes])
    return ["", *names], rows
