"""Judging a saved index: against exact neighbours, against labels, and by how far codes lie from vectors."""

from collections.abc import Sequence

import faiss
import numpy as np

from nearkin import metrics
from nearkin._faiss import METRIC_TYPES
from nearkin._types import Fields, Record
from nearkin._words import counted
from nearkin.contracts import Callback, ignore
from nearkin.data import VectorFile
from nearkin.index.identifiers import positions
from nearkin.index.index import Index
from nearkin.index.rescoring import normalised
from nearkin.metrics.neighbours import ExactNeighbours, exact_distances, ties

CUTS = (1, 10, 100)
ASKING = 200  # rows that stand in for queries
MOST_QUERIES = 1000  # that judge a new index; `evaluate` takes all
_FEWEST = 20  # rows not learned from, to judge by them alone


def judge_neighbors(retrieved: np.ndarray, truth: np.ndarray, cuts: Sequence[int] = CUTS) -> dict[str, float]:
    """Both recalls at every cut that `retrieved` (n, K) and `truth` (n, T) allow, nearest first."""
    record = {}
    for k in (k for k in sorted(set(cuts)) if k <= retrieved.shape[1]):
        record[f"1-recall@{k}"] = metrics.recall_1_at_k(retrieved, truth, k)
    for k in (k for k in sorted(set(cuts)) if k <= min(retrieved.shape[1], truth.shape[1])):
        if k > 1:  # at 1 both are the same
            record[f"{k}-recall@{k}"] = metrics.recall_k_at_k(retrieved, truth, k)
    return record


def exact_neighbors(
    file: VectorFile,
    Q: np.ndarray,
    k: int,
    metric: str = "l2",
    callback: Callback = ignore,
    *,
    own: np.ndarray | None = None,
    themselves: np.ndarray | None = None,
) -> ExactNeighbours:
    """The k exact nearest rows of a file by their numbers, or by their ids `own`; the file is read once, in chunks.

    `themselves` (q,) are the numbers of the rows that are the queries: none is its own neighbour. Rows that tie are
    read again where an answer is judged.
    """
    scores, rows, largest = _nearest(file, Q, min(k + 1, len(file)), metric, themselves, callback)

    def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
        places = positions(own, len(file), ids)
        read, where = np.unique(np.maximum(places, 0), return_inverse=True)
        X = normalised(file.take(read)) if metric == "cosine" else file.take(read)
        kind = "l2" if metric == "l2" else "ip"
        return exact_distances(X[where.reshape(ids.shape)], Q[numbers], kind, places >= 0)

    ids = rows if own is None else own[rows]
    return ExactNeighbours(ids[:, :k], ties(scores, Q, largest), distances, file.shape[1])


def _nearest(
    file: VectorFile, Q: np.ndarray, k: int, metric: str, themselves: np.ndarray | None, callback: Callback
) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores and row numbers of the k nearest rows, each (q, k), smallest first, and the largest squared norm."""
    kind = METRIC_TYPES["l2" if metric == "l2" else "ip"]
    sign = 1.0 if metric == "l2" else -1.0  # smaller is nearer
    scores = np.full((len(Q), k), np.inf, np.float32)
    ids = np.full((len(Q), k), -1, np.int64)
    start, largest = 0, 0.0
    for chunk in file.chunks():
        if metric == "cosine":
            chunk = chunk.copy()  # of a table in memory it is the caller's
            faiss.normalize_L2(chunk)
        largest = max(largest, float(np.einsum("nd,nd->n", chunk, chunk).max()))
        values, rows = faiss.knn(np.ascontiguousarray(Q, np.float32), chunk, min(k + 1, len(chunk)), metric=kind)
        if themselves is not None:
            values[rows + start == themselves[:, None]] = sign * np.inf
        scores = np.hstack([scores, sign * values])
        ids = np.hstack([ids, rows + start])
        order = np.argsort(scores, axis=1, kind="stable")[:, :k]
        scores, ids = np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)
        start += len(chunk)
        callback(start, {"total": len(file)})
    return scores, ids, largest


def search_in_batches(
    index: Index, Q: np.ndarray, k: int, oversample: int | None, callback: Callback, rows: int = 256
) -> tuple[np.ndarray, np.ndarray]:
    """`index.search` over all queries, (scores, ids) each (n, k), in batches so that progress can be shown."""
    scores, ids = [], []
    for start in range(0, len(Q), rows):
        found = index.search(Q[start : start + rows], k, oversample=oversample)
        scores.append(found[0])
        ids.append(found[1])
        callback(min(start + rows, len(Q)), {"total": len(Q)})
    return np.concatenate(scores), np.concatenate(ids)


def without(found: np.ndarray, themselves: np.ndarray) -> np.ndarray:
    """Answers (q, k + 1) without the id of the query itself (q,): (q, k)."""
    order = np.argsort(found == themselves[:, None], axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)[:, :-1]


def rows_as_queries(file: VectorFile, run: Fields, count: int = ASKING) -> np.ndarray:
    """Numbers of up to `count` rows of a file, in order: of those that an index did not learn from, if 20 are found.

    `run` says how it learned: "trained_on" rows drawn by the "seed", unless it learned from other vectors ("train").
    The same rows come for the same file and run.
    """
    drawn = np.random.default_rng(0).permutation(file.draw(4 * count, 0))
    trained_on, seed = run.get("trained_on", 0), run.get("seed")
    if run.get("train") is None and isinstance(seed, int) and trained_on < len(file):
        unseen = drawn[~np.isin(drawn, file.draw(trained_on, seed))]
        drawn = unseen if len(unseen) >= _FEWEST else drawn
    return np.sort(drawn[:count])


def judge_codes(
    index: Index, file: VectorFile, run: Fields, Q: np.ndarray | None = None, k: int = 10, callback: Callback = ignore
) -> Record:
    """How many of the k exact neighbours the codes of a file's rows keep, and by which queries: as `evaluate` says it.

    By queries Q (q, d), 1,000 of them drawn where there are more; else by rows of the file, none its own neighbour.
    """
    themselves = None
    if Q is None:
        themselves = rows_as_queries(file, run)
        Q = file.take(themselves)
    elif len(Q) > MOST_QUERIES:
        Q = Q[np.sort(np.random.default_rng(0).choice(len(Q), MOST_QUERIES, replace=False))]
    k = min(k, len(file) - (themselves is not None))
    if not k:
        return {}
    metric = "l2" if index.metric == "hamming" else index.metric
    truth = exact_neighbors(file, Q, k, metric, callback, own=index.ids, themselves=themselves)
    found = search_in_batches(index, Q, k + (themselves is not None), None, ignore)[1]
    if themselves is not None:
        found = without(found, themselves if index.ids is None else index.ids[themselves])
    by = f"{len(Q):,} queries" if themselves is None else f"{len(Q):,} rows of {file.name}, each without itself"
    return {f"{k}-recall@{k}": truth.kept(found), "judged_by": by}


def judge_searches(
    index: Index, found: Sequence[np.ndarray], truth: ExactNeighbours, oversample: int | None
) -> list[Record]:
    """Recall of answers (q, k): by the codes alone and, with `oversample`, ranked again by kept vectors. One row each.

    All recalls are of the same answers: by the codes alone at every cut, rescored at k and of the nearest neighbour
    alone. `bytes_per_vector` are the code's, `bytes_kept` those of all vectors kept in the folder.
    """
    names = ("exact" if index.quantizer is None else "by code alone", "rescored by kept vectors")
    rows: list[Record] = []
    for name, ids, times in zip(names, found, (None, oversample), strict=False):
        kept = 4 * index.n_features * len(index) if times is not None else 0
        about = {"search": name, "oversample": times, "bytes_per_vector": index.bytes_per_vector, "bytes_kept": kept}
        measures = judge_neighbors(ids, truth.beside(ids), (*CUTS, ids.shape[1]))
        if times is not None:  # fewer neighbours have fewer candidates: their recall is lower than of these first ones
            measures = {name: value for name, value in measures.items() if name.startswith(("1-", f"{ids.shape[1]}-"))}
        rows.append(about | measures)
    return rows


def search_rows(searches: Sequence[Fields]) -> tuple[list[str], Sequence[Sequence[object]]]:
    """Columns and rows of the searches that were judged: by code alone, and rescored, with what each needs."""
    measures = [name for name in searches[-1] if "recall@" in name]
    rows = []
    for row in searches:
        name = row["search"] if row["oversample"] is None else f"{row['search']}, {row['oversample']} × k"
        kept = f" + {row['bytes_kept'] / 1e6:.3g} MB of vectors" if row["bytes_kept"] else ""
        rows.append(
            [name, f"{counted(row['bytes_per_vector'], 'byte')}{kept}", *(row[measure] for measure in measures)]
        )
    return ["search", "needs", *measures], rows
