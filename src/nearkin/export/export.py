"""An index into an engine: write, check, publish."""

from nearkin._check import check_integer, check_real
from nearkin._types import ArrayLike, Record
from nearkin.export.self_check import RecallTooLowError, self_check
from nearkin.export.source import Source
from nearkin.export.target import Callback, Target
from nearkin.index import Index


def export_index(
    index: Index,
    target: Target,
    *,
    queries: ArrayLike | None = None,
    k: int = 10,
    recall_target: float | None = None,
    callback: Callback = lambda rows, record: None,
) -> Record:
    """Write `index` to `target`, compare the neighbours of 100 queries (or of `queries` (q, d)), publish.

    recall_target: the share of the index's k neighbours that the engine must name; None for the target's own.
    Returns the record: rows, the outcome of the check, facts of the target. Raises RecallTooLowError, with nothing
    published, where the engine's answers are not the index's, and what the target raises.
    """
    goal = target.recall_target if recall_target is None else check_real(recall_target, "recall_target", low=0, high=1)
    k = check_integer(k, "k", low=1)
    source = Source(index)
    with target.writing(source, callback) as written:
        check = self_check(written.judge or source, written.search, goal, k=k, queries=queries)
        if not check.passed:
            raise RecallTooLowError(check)
    return {
        "rows": len(source),
        "queries": check.queries,
        "k": check.k,
        "recall": check.recall,
        "recall_target": check.target,
        "self_check": str(check),
        **written.facts,
    }
