"""The whole of `nearkin evaluate`: load, search, judge, keep the record."""

import os
import time
from collections.abc import Sequence

import numpy as np

import nearkin as nk
from nearkin._check import check_instance
from nearkin._storage import read_config
from nearkin._types import Fields, Record
from nearkin._words import counted
from nearkin.contracts import BitCodes, Callback
from nearkin.data import VectorFile
from nearkin.index.index import Index
from nearkin.index.probing import probing_curve
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.pipeline.evaluate.hash_study import STUDIED_ROWS, study_hashing
from nearkin.pipeline.evaluate.labels import judge_by_label
from nearkin.pipeline.evaluate.neighbours import (
    exact_neighbors,
    judge_searches,
    rows_as_queries,
    search_in_batches,
    without,
)
from nearkin.pipeline.folder import RUN, read_record, save_evaluation, version_of
from nearkin.pipeline.steps import Steps


def evaluate_folder(
    folder: str | os.PathLike,
    Q: np.ndarray | None = None,
    *,
    truth: np.ndarray | None = None,
    base: VectorFile | None = None,
    labels: np.ndarray | None = None,
    query_labels: np.ndarray | None = None,
    k: int = 100,
    oversample: int | None = None,
    n_probes: Sequence[int] = (),
    study: bool = False,
    steps: Steps | None = None,
    about: Fields | None = None,
) -> Record:
    """Judge the saved index by queries Q (n, d); returns the record, which is kept as evaluation.json beside it.

    Without queries up to 200 rows of `base` are asked, and none counts as its own neighbour: rows that the index did
    not learn from, if there are any. `truth` (n, T) are ids of exact neighbours; `base` finds them by exact search, and
    of rows at one distance each is as right. `labels` (rows of the index, in order) and `query_labels` (n,) judge by
    label. `study`, for a Hamming index, adds what other hashing methods, lengths and scales would give
    (`study_hashing` on `base`). All recalls are of one search for `k` neighbours; the record's "searches" has a row by
    code alone before one with `oversample`. One of `n_probes` is the number of lists that the searches visit; several
    give the curve "probing", and the searches visit the default number.
    ValueError where lengths do not agree, and where the index was changed meanwhile.
    """
    steps = steps or Steps()
    read_config(folder, "index")
    judged = version_of(folder)
    index = nk.Index.load(folder)
    if len(n_probes) == 1:
        index.n_probe = n_probes[0]
    run, themselves = read_record(folder, RUN) or {}, None
    if Q is None:
        themselves, Q = _rows_that_ask(index, base, run, truth, labels)
    _check_lengths(index, Q, truth, base, labels, query_labels)
    if study and (index.metric != "hamming" or base is None):
        raise ValueError("study is for an index of bits (--method itq, oge, ...) and needs its vectors; give base")
    exact = None if truth is None else ExactNeighbours.given(truth)
    others = len(index) - (themselves is not None)
    if base is not None and exact is None:
        with steps.step("exact search") as callback:
            metric = index.metric if index.metric in ("ip", "cosine") else "l2"  # bits are judged by distance
            exact = exact_neighbors(base, Q, min(k, others), metric, callback, own=index.ids, themselves=themselves)
    names = None if themselves is None else themselves if index.ids is None else index.ids[themselves]
    found: list[np.ndarray] = []
    for times in (None, oversample) if oversample is not None else (None,):
        with steps.step("search") as callback:
            start = time.perf_counter()
            ids = search_in_batches(index, Q, k + (names is not None), times, callback)[1]
            rate = len(Q) / (time.perf_counter() - start)
        found.append(ids if names is None else without(ids, names))
    record: Record = {
        "index": str(folder), "vectors": len(index), "queries": len(Q), "queries_are_rows": themselves is not None,
        "k": k, "oversample": oversample, "n_probe": index.n_probe,
    }  # fmt: skip
    record |= {name: run[name] for name in ("method", "bytes_per_vector", "compression", "distortion") if name in run}
    if exact is not None:
        with steps.step("judge") as callback:
            searches = judge_searches(index, found, exact, oversample)
            record |= {name: value for name, value in searches[-1].items() if "recall@" in name}
            record["searches"] = searches
            if len(n_probes) > 1:
                record["probing"] = _probing(index, Q, exact, k, n_probes, oversample)
    if labels is not None and query_labels is not None:
        with steps.step("rank") as callback:
            record |= judge_by_label(index, Q, labels, query_labels, callback)
    if study and base is not None:
        with steps.step("study") as callback:
            record["study"] = _study(index, base, labels, callback)
    record |= {"queries_per_second": rate, "seconds": steps.seconds, **(about or {})}
    save_evaluation(folder, record, judged)
    return record


def _rows_that_ask(
    index: nk.Index, base: VectorFile | None, run: Record, truth: np.ndarray | None, labels: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of rows of the base, and the rows: they stand in for queries."""
    if base is None or truth is not None or labels is not None or len(index) < 2:
        raise ValueError("queries are missing; give QUERIES, or --base alone, whose rows are then asked")
    _check_base(index, base)
    numbers = rows_as_queries(base, run)
    return numbers, base.take(numbers)


def _check_base(index: nk.Index, base: VectorFile) -> None:
    if len(base) != len(index):
        raise ValueError(
            f"{base.name} has {counted(len(base), 'row')} and the index {len(index):,}; give the vectors it was made of"
        )


def _check_lengths(
    index: nk.Index,
    Q: np.ndarray,
    truth: np.ndarray | None,
    base: VectorFile | None,
    labels: np.ndarray | None,
    query_labels: np.ndarray | None,
) -> None:
    if truth is not None and len(truth) != len(Q):
        raise ValueError(
            f"truth has {counted(len(truth), 'row')} and there are {len(Q):,} queries; give one row a query"
        )
    if base is not None:
        _check_base(index, base)
    if (labels is None) != (query_labels is None):
        raise ValueError("labels need query_labels and the other way round; give both (--labels, --query-labels)")
    if labels is not None and len(labels) != len(index):
        raise ValueError(f"labels has {len(labels)} values and the index {len(index)} rows; give one for each row")
    if query_labels is not None and len(query_labels) != len(Q):
        raise ValueError(
            f"query_labels has {len(query_labels)} values and there are {len(Q)} queries; give one for each"
        )


def _study(index: Index, base: VectorFile, labels: np.ndarray | None, callback: Callback) -> Record:
    """The study of a sample of the base rows, from a fixed seed."""
    rows = base.draw(STUDIED_ROWS, 0)
    n_bits = check_instance(index.quantizer, "quantizer", BitCodes).n_bits
    return study_hashing(base.take(rows), n_bits, None if labels is None else labels[rows], callback=callback)


def _probing(
    index: Index, Q: np.ndarray, truth: ExactNeighbours, k: int, n_probes: Sequence[int], oversample: int | None
) -> list[dict[str, float]]:
    """Recall and speed for each number of lists visited, at k or as deep as the truth goes."""
    depth = min(k, truth.ids.shape[1])
    curve = probing_curve(index, Q, truth, depth, n_probes=sorted(set(n_probes)), oversample=oversample)
    return [
        {
            "n_probe": point.n_probe,
            f"{depth}-recall@{depth}": point.recall,
            "queries_per_second": len(Q) / point.seconds,
        }
        for point in curve
    ]
