"""`nearkin evaluate`: the quality of a saved index by exact neighbours, labels and relevance judgements."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from nearkin._check import check_instance, check_label_pair, check_queries
from nearkin._exact import nearest_of_parts
from nearkin._fields import Fields, Record, StrPath, counted
from nearkin._storage import digest, read_config
from nearkin.contracts import BitCodes, Callback, ignore
from nearkin.data import VectorFile, read_column, read_judgements, read_neighbors
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.faiss_index import flat_codes
from nearkin.index.full_search import FullSearch
from nearkin.index.identifiers import RowIds
from nearkin.index.index import Index
from nearkin.index.searching import normalised
from nearkin.jobs import inputs
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.inputs import FEWEST_QUERIES, places_of
from nearkin.jobs.pairs import evaluate_pairs
from nearkin.jobs.run import RUN, Steps, read_record, save_evaluation, threads_used, version_of
from nearkin.metrics.hamming import RankHistograms, hamming_histograms, relevant_rows
from nearkin.metrics.neighbours import ExactNeighbours, Part, drawn_order, exact_distances, ties, with_ties
from nearkin.metrics.retrieval import DEPTH, MRR, NDCG, RECALL, graded_values, is_padding, without_self
from nearkin.metrics.trial import mean_interval, paired_difference
from nearkin.records import Judgements

CUTS = (1, 10, 100)
ROWS_AS_QUERIES = 200
MOST_QUERIES = 1000  # most queries that measure a new index; `evaluate` uses all
_FULL_RANKING = 100_000  # rows; of a larger index the first _FULL_RANKING // 100 answers are judged by label
_RANKED = 4_000_000  # answers in one batch of queries, which bounds memory
_RADIUS = 2
OVERSAMPLE = 4  # of the search by kept vectors in `judge_relevance`, unless one is given
_COMPARED = 100  # rows of `base` that are compared with the index's vectors
_UNKNOWN = 0.01  # share of judged ids that may be unknown


def evaluate(
    index: Folder,
    queries: File | None = None,
    *,
    truth: File | None = None,
    base: File | None = None,
    labels: File | None = None,
    query_labels: File | None = None,
    k: int = 10,
    oversample: int | None = None,
    n_probe: int | str | None = None,
    qrels: File | None = None,
    query_ids: File | None = None,
    missing: str = "raise",
) -> Record:
    """Measure an index: recall against exact neighbours, mAP by label, distortion; or a model of pairs on later pairs.

    "1-recall@k" is the share of queries whose nearest neighbour is among the first k found; "k-recall@k" is the share
    of the k nearest neighbours found. All are of one search for k neighbours, with the options of `nearkin search`;
    vectors of equal codes are in random order, and recalls are expected values.
    Without QUERIES vectors of `base` are the queries, and none is its own neighbour; an index of a folder of pairs uses
    that folder. The result is saved in the index's folder as evaluation.json, for `nearkin report`.

    Examples:

    - nearkin evaluate idx --base X.npy
    - nearkin evaluate idx Q.npy --truth gt.npy
    - nearkin evaluate idx Q.npy --truth gt.npy -k 100 --oversample 4
    - nearkin evaluate emb later.csv

    Parameters
    ----------
    index: The folder that `nearkin compress` or `nearkin embed` wrote.
    queries: The queries, as `nearkin compress` reads vectors; for a folder of `nearkin embed`, later pairs.
    truth: Ids of each query's exact neighbours, nearest first (.npy, .npz:key, .ivecs, .csv, .parquet).
    base: The vectors that were indexed, in its order or with its ids: the exact neighbours are searched in them.
    labels: A label for every indexed vector, in order (file.csv:column), or several: separated by ; or | in the cell,
        or columns of 0 and 1. Vectors that share a label are relevant to each other.
    query_labels: A label for every query (with `labels`).
    k: Neighbours of each query.
    oversample: Rescoring: fetch this many times k candidates by code and rank them by kept vectors.
    n_probe: Inverted lists to search: several numbers, such as 1,4,16,64, print recall and speed for each.
    qrels: Relevance judgements (query id, vector id, grade; in TREC's or BEIR's form), for NDCG@10, Recall@100 and
        MRR@10, with the difference from exact search (with `base`, or vectors kept in the index).
    query_ids: One id a query, for the judgements. [default: the ids that the queries have, else row numbers]
    missing: What to do with pairs or answers that lack a cell: raise an error, or drop and count them.
    """
    if queries is not None and inputs.holds_pairs(index):
        return evaluate_pairs(index, queries, missing)
    if queries is not None and (Path(index) / inputs.LEFT).is_file() and not (base or truth or labels or qrels):
        way = "evaluate a folder of `nearkin embed`, or train with a column called split, 2 for test pairs"
        raise ValueError(f"{index} keeps no model to measure later pairs by; {way}")
    if all(given is None for given in (queries, base, truth, labels)):
        queries = base = inputs.pairs_behind(index)
    judged = None if qrels is None else read_judgements(qrels)
    asked = None if queries is None else inputs.open_queries(queries, query_ids)
    rows = None if base is None else inputs.open_given(base)
    n, n_queries = read_config(index, "index")["n_rows"], None if asked is None else len(asked.vectors)
    made = evaluate_folder(
        index, None if asked is None else asked.vectors, k=k, oversample=oversample, n_probes=_counts(n_probe),
        truth=None if truth is None else read_neighbors(truth), judged=judged,
        base=None if rows is None else rows.file, base_ids=None if rows is None else rows.ids,
        labels=None if labels is None else read_column(labels, n, several=True),
        label_ids=None if labels is None else inputs.ids_of_rows(labels),
        query_labels=None if query_labels is None else read_column(query_labels, n_queries, several=True),
        query_ids=None if asked is None else asked.ids,
        about={"query_file": queries, "threads": threads_used()},
    )  # fmt: skip
    if not any(name.startswith(("searches", "relevance", "mAP")) for name in made):
        made["notes"] = ["for the recall type base=VECTORS or truth=FILE; labels=FILE for mAP"]
    return made


def _counts(n_probe: int | str | None) -> list[int]:
    """The numbers of lists in a text: 1,4,16."""
    parts = [] if n_probe is None else str(n_probe).split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise ValueError(f"n_probe is {n_probe!r}; it must be a number from 1 on, or several: 1,4,16")
    return [int(part) for part in parts]


def evaluate_folder(
    folder: StrPath,
    Q: np.ndarray | None = None,
    *,
    truth: np.ndarray | None = None,
    base: VectorFile | None = None,
    base_ids: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    query_labels: np.ndarray | None = None,
    label_ids: np.ndarray | None = None,
    k: int = 10,
    oversample: int | None = None,
    n_probes: Sequence[int] = (),
    judged: Judgements | None = None,
    query_ids: np.ndarray | None = None,
    about: Fields | None = None,
) -> Record:
    """Measure a saved index with queries Q (q, d), by default vectors of `base`.

    Recall is measured by the ids `truth` (q, T) of exact neighbours, or by exact search among the vectors of `base`,
    those of the index in its order or, by `base_ids`, in another, where vectors at equal distance are all correct; mAP
    by `labels` (n,) and `query_labels` (q,), matched by `label_ids` (n,) where these are the index's; relevance by the
    grades `judged` of queries called `query_ids` (q,). Several `n_probes` give the curve "probing".

    Returns the record, kept as evaluation.json: "searches" has one record without and, with `oversample`, one with
    rescoring. ValueError for no queries, lengths that disagree, an index that is changed meanwhile.
    """
    steps = Steps()
    read_config(folder, "index")
    version = version_of(folder)
    index = Index.load(folder)
    if len(n_probes) == 1:
        index.n_probe = n_probes[0]
    run, rows = read_record(folder, RUN) or {}, None
    if base is not None and base_ids is not None:
        base = _in_order(base, base_ids, index.row_ids)
    if Q is None:
        if base is None or len(index) < 2 or any(given is not None for given in (truth, labels, judged)):
            raise ValueError("queries are missing; give QUERIES, or base=FILE alone: its vectors are then the queries")
        rows, by = rows_as_queries(base, run)
        Q = base.take(rows)
    Q = check_queries(Q, index.n_features)
    by = by if rows is not None else counted(len(Q), "query", "queries")
    _check_lengths(index, len(Q), base=base, truth=truth, labels=labels, query_labels=query_labels)
    if labels is not None and label_ids is not None and (places := places_of(index.row_ids, label_ids)).min() >= 0:
        labels = labels[places]
    if base is not None:
        _check_order(index, base)
    names = np.arange(len(Q)) if query_ids is None else query_ids
    relevance = None if judged is None else Relevance.of(judged, names, index.ids, len(index))
    exact = None if truth is None else ExactNeighbours.given(truth)
    if base is not None and exact is None:
        with steps.step("exact search") as callback:
            depth = min(k, len(index) - (rows is not None))
            exact = exact_neighbors(base, Q, depth, exact_metric(index), callback, own=index.ids, queries_are=rows)
    own, searches = None if rows is None else index.row_ids[rows], list[Record]()
    for times in dict.fromkeys((None, oversample)):
        cuts = [] if exact is None else _cuts(min(k, len(index) - (own is not None)), exact.ids.shape[1], times)
        search = FullSearch(index, Q, k, times, own)
        with steps.step("search") as callback:
            if exact is None:
                deque(search.parts(callback, ties=False), 0)
            else:
                searches.append(_measures(index, times, search.recalls(exact, cuts, callback)))
    record: Record = {
        "index": str(folder), "vectors": len(index), "queries": len(Q), "judged_by": by,
        "k": k, "oversample": oversample, "n_probe": index.n_probe, "compared_by": digest(Q, exact_metric(index)),
    }  # fmt: skip
    record |= {name: run[name] for name in ("method", "bytes_per_vector", "compression", "distortion") if name in run}
    if exact is not None:
        record |= {name: value for name, value in searches[-1].items() if "recall@" in name} | {"searches": searches}
        record["recall_interval"] = [*searches[-1]["intervals"].values()][-1]
    if exact is not None and len(n_probes) > 1:
        with steps.step("evaluate"):
            probed = FullSearch(index, Q, min(k, exact.ids.shape[1]), oversample, own)
            record["probing"] = [_at_probe(probed, count, exact) for count in sorted(set(n_probes))]
            index.n_probe = record["n_probe"]
    if labels is not None and query_labels is not None:
        query_labels, labels = check_label_pair(query_labels, "query_labels", len(Q), labels, "labels", len(index))
        with steps.step("rank") as callback:
            record |= judge_by_label(index, Q, labels, query_labels, callback)
    if relevance is not None:
        record |= judge_relevance(index, Q[relevance.queries], relevance, base, oversample, steps)
    record |= {"queries_per_second": len(Q) / search.seconds, "seconds": steps.seconds, **(about or {})}
    save_evaluation(folder, record, version)
    return record


def _in_order(base: VectorFile, base_ids: np.ndarray, ids: np.ndarray) -> VectorFile:
    """The vectors of an index's `ids` (n,), in this order, by the ids (m,) of `base`; `base` itself if it lacks some or
    has one twice."""
    if np.array_equal(base_ids, ids):  # usual, and no text is made of ids
        return base
    places = places_of(ids, base_ids)
    usable = places.min(initial=0) >= 0 and len(np.unique(base_ids)) == len(base_ids)
    return VectorFile(base.name, array_rows(base.read()[places])) if usable else base


def _at_probe(search: FullSearch, n_probe: int, truth: ExactNeighbours) -> Record:
    """Recall and speed of a search that visits that many inverted lists."""
    search.index.n_probe, k = n_probe, search.k  # raises without an inverted file
    one = replace(search, seconds=0.0)
    recall = float(one.recalls(truth, [(k, k)])[k, k].mean())
    return {"n_probe": n_probe, f"{k}-recall@{k}": recall, "queries_per_second": len(search.Q) / one.seconds}


def _check_lengths(index: Index, q: int, base: VectorFile | None, **given: np.ndarray | None) -> None:
    if base is not None and base.shape != (len(index), index.n_features):
        raise ValueError(
            f"{base.name} has shape {base.shape}, and the index {(len(index), index.n_features)}; give the vectors it "
            "was made of"
        )
    if (given["labels"] is None) != (given["query_labels"] is None):
        raise ValueError("give both, labels=... and query_labels=..., or none of them")
    for name, values in given.items():
        n, what = (len(index), "vectors of the index") if name == "labels" else (q, "queries")
        if values is not None and len(values) != n:
            found = counted(len(values), "list" if name == "truth" else "value")
            raise ValueError(f"{name} has {found} and there are {n:,} {what}; give one for each")
    if (truth := given["truth"]) is not None:
        unknown = truth[(RowIds(index.ids, len(index)).positions(truth) < 0) & ~is_padding(truth)]
        if len(unknown):
            raise ValueError(
                f"truth has {counted(len(unknown), 'id')} that the index lacks, the first is {unknown[0].item()!r}; "
                "give the ids of its vectors, or numbers from 0 where it has none"
            )


def _check_order(index: Index, base: VectorFile) -> None:
    """ValueError where rows drawn from `base` are no nearer to the index's vectors at their places than to others."""
    drawn = base.draw(_COMPARED, 0)
    if len(drawn) < _COMPARED:
        return
    X = base.take(drawn)
    if index.metric == "hamming" and index.kept is None:
        codes = check_instance(index.quantizer, "quantizer", BitCodes).encode(X), flat_codes(index.faiss_index)[drawn]
        X, own = (np.unpackbits(each, axis=1).astype(np.float32) for each in codes)
    else:
        own = index.vectors(index.row_ids[drawn])
        X = normalised(X) if index.metric == "cosine" and index.kept is None else X
    far, near = (np.einsum("nd,nd->n", X - other, X - other) for other in (np.roll(own, 1, axis=0), own))
    if np.mean(near <= far) < 0.6:  # half of them by chance
        raise ValueError(
            f"{base.name} has other vectors than the index, or the same in another order; give the vectors that it was "
            "made of, in their order, or a table with its ids"
        )


def exact_metric(index: Index) -> str:
    """The metric of the exact neighbours that an index is compared with; bits are compared by distance."""
    return index.metric if index.metric in ("ip", "cosine") else "l2"


def exact_neighbors(
    file: VectorFile,
    Q: np.ndarray,
    k: int,
    metric: str = "l2",
    callback: Callback = ignore,
    *,
    own: np.ndarray | None = None,
    queries_are: np.ndarray | None = None,
) -> ExactNeighbours:
    """The k exact nearest rows of a file by their numbers, or by their ids `own`; the file is read once, in chunks.
    `queries_are` (q,): numbers of the vectors that are the queries, none of which is its own neighbour."""
    asked = normalised(Q) if metric == "cosine" else Q

    def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        start = 0
        for chunk in file.chunks(callback=callback):
            yield np.arange(start, start := start + len(chunk)), normalised(chunk) if metric == "cosine" else chunk

    scores, rows = nearest_of_parts(parts(), asked, k + 1 + (queries_are is not None), metric)
    if queries_are is not None:
        scores, rows = (without_self(rows, queries_are, of) for of in (scores, rows))

    def distances(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
        places = RowIds(own, len(file)).positions(ids)
        read, where = np.unique(np.maximum(places, 0), return_inverse=True)
        X = normalised(file.take(read)) if metric == "cosine" else file.take(read)
        return exact_distances(X[where.reshape(ids.shape)], asked[numbers], metric, places >= 0)

    ids = rows[:, :k] if own is None else own[rows[:, :k]]
    return ExactNeighbours(ids, ties(scores), distances, file.shape[1])


def rows_as_queries(file: VectorFile, run: Fields, count: int = ROWS_AS_QUERIES) -> tuple[np.ndarray, str]:
    """Numbers of up to `count` rows of a file, in order, and their description; vectors that the index was not
    trained on, if there are 20. By its record `run`, unless it is "changed", it trained on "trained_on" vectors drawn
    with the "seed", or on other vectors, "train"."""
    drawn = np.random.default_rng(0).permutation(file.draw(4 * count, 0))
    trained_on, seed, unseen = run.get("trained_on", len(file)), run.get("seed"), drawn[:0]
    if run.get("train") is not None:
        unseen = drawn
    elif isinstance(seed, int) and trained_on < len(file):
        unseen = drawn[~np.isin(drawn, file.draw(trained_on, seed))]
    held_out = len(unseen) >= FEWEST_QUERIES and not run.get("changed")
    rows = np.sort((unseen if held_out else drawn)[:count])
    known = "not trained on" if held_out else "trained on (new ones have a lower recall)"
    return rows, f"{counted(len(rows), 'vector')} of {file.name}, {known}, each without itself"


def judge_codes(
    index: Index, file: VectorFile, run: Fields, Q: np.ndarray | None = None, callback: Callback = ignore
) -> Record:
    """10-recall@10 of the codes of a file's vectors, as `evaluate` measures it.

    The queries are Q (q, d), 1,000 of them at most; without Q they are rows of the file, none its own neighbour.
    """
    rows = None
    if Q is None:
        rows, by = rows_as_queries(file, run)
        Q = file.take(rows)
    elif len(Q) > MOST_QUERIES:
        Q = Q[np.sort(np.random.default_rng(0).choice(len(Q), MOST_QUERIES, replace=False))]
    k = min(10, len(file) - (rows is not None))
    if not k:
        return {}
    truth = exact_neighbors(file, Q, k, exact_metric(index), callback, own=index.ids, queries_are=rows)
    by = by if rows is not None else counted(len(Q), "query", "queries")
    own = None if rows is None else index.row_ids[rows]
    recall = FullSearch(index, Q, k, own=own).recalls(truth, [(k, k)])[k, k]
    return {f"{k}-recall@{k}": float(recall.mean()), "recall_interval": mean_interval(recall), "judged_by": by}


def _cuts(k: int, known: int, oversample: int | None) -> list[tuple[int, int]]:
    """The n nearest and the depths of the recalls of a search for k, of which `known` neighbours are known."""
    depths = [depth for depth in sorted({*CUTS, k}) if depth <= k]
    # a search for fewer neighbours would rescore fewer candidates
    own = [depth for depth in depths if 1 < depth <= known and (oversample is None or depth == k)]
    return [(1, depth) for depth in depths] + [(depth, depth) for depth in own]


def _measures(index: Index, oversample: int | None, found: Mapping[tuple[int, int], np.ndarray]) -> Record:
    """A search and its recalls, with their 95 % intervals. `bytes_per_vector` are those of the code,
    `bytes_kept` those of all vectors kept in the folder."""
    kept = index.kept.row_bytes * len(index) if oversample is not None and index.kept is not None else 0
    about = {"search": _kind(index, oversample), "oversample": oversample, "bytes_per_vector": index.bytes_per_vector}
    values = {f"{n}-recall@{depth}": of for (n, depth), of in found.items()}
    about |= {"bytes_kept": kept, "intervals": {name: mean_interval(of) for name, of in values.items()}}
    return about | {name: float(of.mean()) for name, of in values.items()}


def _kind(index: Index, oversample: int | None) -> str:
    """The kind of a search, named by the distances that rank its answers."""
    if oversample is not None:
        return "rescored by kept vectors"
    return "exact" if index.quantizer is None else "without rescoring"


def judge_by_label(
    index: Index, Q: np.ndarray, labels: np.ndarray, query_labels: np.ndarray, callback: Callback = ignore
) -> dict[str, float]:
    """mAP and precision at every cut: an answer is right if its vector has the query's label, or shares one. `labels`
    (len(index),) or (len(index), c), `query_labels` (q,) or (q, c), as `hamming_histograms` takes them. Measures are
    expected values over the orders of vectors with equal scores."""
    judge = _judge_bits if index.metric == "hamming" else _judge_ranking
    rows = max(1, _RANKED // len(index))
    parts: list[dict[str, np.ndarray]] = []
    for start in range(0, len(Q), rows):
        part = slice(start, start + rows)
        parts.append(judge(index, Q[part], labels, query_labels[part]))
        callback(min(start + rows, len(Q)), {"total": len(Q)})
    return {name: float(np.concatenate([part[name] for part in parts]).mean()) for name in parts[0]}


def _judge_ranking(index: Index, Q: np.ndarray, labels: np.ndarray, query_labels: np.ndarray) -> dict[str, np.ndarray]:
    """Measures (q,) of the answers, of which there are as many as rows; mAP@K of the first K in a large index. Rows of
    equal scores, such as those with one code, are in random order: measures are expected values."""
    n, ids = len(index), RowIds(index.ids, len(index))
    K = n if n <= _FULL_RANKING else _FULL_RANKING // 100
    scores, places = np.empty((len(Q), K)), np.empty((len(Q), K), np.int64)
    for some, near, found in FullSearch(index, Q, K).parts():
        own = ids.positions(found)
        scores[some], places[some] = near[:, :K], own if n == K else drawn_order(near, own, some)[:, :K]
    relevant, totals = relevant_rows(query_labels, labels, len(Q), n), np.empty(len(Q), np.int64)
    hits = np.empty(places.shape, bool)
    for i, rows in enumerate(relevant):
        hits[i], totals[i] = rows[places[i]], rows.sum()
    hits &= places >= 0
    ranks, found = RankHistograms.of(scores, hits), hits.sum(axis=1)
    record = {f"precision@{k}": ranks.precision_at(k) for k in CUTS if k <= K}
    share = found / np.maximum(np.minimum(totals, K), 1)
    return record | {"mAP" if n == K else f"mAP@{K}": ranks.average_precision() * share}


def _judge_bits(index: Index, Q: np.ndarray, labels: np.ndarray, query_labels: np.ndarray) -> dict[str, np.ndarray]:
    codes = flat_codes(index.faiss_index)
    encoded = check_instance(index.quantizer, "quantizer", BitCodes).encode(Q)
    ranks = hamming_histograms(encoded, codes, query_labels, labels)
    record = {f"precision@{k}": ranks.precision_at(k) for k in CUTS if k <= len(index)}
    record[f"precision within radius {_RADIUS}"] = ranks.precision_within(_RADIUS)
    return record | {"mAP": ranks.average_precision()}


class Relevance(NamedTuple):
    """Judgements of vectors that an index holds: positions (q,) of the judged queries, and grades (q, n or more).

    Columns from n on are judged vectors that the index lacks, which no answer can be. `notes` describe the rest.
    """

    queries: np.ndarray
    grades: sp.csr_matrix
    notes: list[str]

    @classmethod
    def of(cls, judged: Judgements, query_ids: np.ndarray, row_ids: np.ndarray | None, n: int) -> "Relevance":
        """Join judgements with the ids of queries (q,) and of n vectors, None for 0, 1, 2, ...; they are compared as
        text."""
        notes: list[str] = []
        asked = _places(judged.queries, query_ids, "queries", "QUERIES", "query_ids=FILE", notes)
        own = np.arange(n) if row_ids is None else row_ids
        rows = _places(judged.rows, own, "rows", "the index", "ids=FILE, compressed again", notes)
        keep = (asked >= 0) & (judged.grades > 0)
        columns = rows[keep]
        unknown = np.unique(judged.rows[keep][columns < 0], return_inverse=True)[1]
        columns[columns < 0] = n + unknown
        queries, numbers = np.unique(asked[keep], return_inverse=True)
        left_out = len(np.unique(asked[asked >= 0])) - len(queries)
        if not len(queries):
            raise ValueError("qrels have no query with a grade above 0; without one there is nothing to find")
        if left_out:
            notes.append(f"{counted(left_out, 'judged query', 'judged queries')} without a relevant vector left out")
        shape = len(queries), n + int(unknown.max(initial=-1)) + 1
        return cls(queries, sp.csr_matrix((judged.grades[keep], (numbers, columns)), shape), notes)


def _places(judged: np.ndarray, ids: np.ndarray, what: str, where: str, how: str, notes: list[str]) -> np.ndarray:
    """Positions (m,) of judged ids among `ids`, -1 for an unknown one; `notes` count those."""
    found, names = places_of(judged, ids), np.unique(judged)
    unknown = np.unique(judged[found < 0]).tolist()
    if len(unknown) > _UNKNOWN * len(names):
        raise ValueError(
            f"qrels name {len(unknown):,} {what} of {len(names):,} that {where} lacks, the first is {unknown[0]!r}; "
            f"known are {', '.join(map(str, ids[:3].tolist()))}: give qrels of these ids, or the ids by {how}"
        )
    if unknown:
        notes.append(f"{len(unknown):,} judged {what} that {where} lacks count as not found")
    return found


def judge_relevance(
    index: Index, Q: np.ndarray, judged: Relevance, base: VectorFile | None, oversample: int | None, steps: Steps
) -> Record:
    """NDCG@10, Recall@100 and MRR@10 of the evaluated queries Q (q, d), by each search that the index allows. With
    `base` or kept vectors each search has the "change" from the exact neighbours in them: mean and 95 % interval."""
    n, searches, best = len(index), list[Record](), None
    if base is None and index.kept is not None:
        base = VectorFile("the index", array_rows(index.kept.rows(np.arange(n))))
    kinds: list[tuple[str, int | None]] = [(_kind(index, None), None)]
    if base is not None and index.quantizer is not None:
        kinds.insert(0, ("exact", None))
    if index.kept is not None and index.quantizer is not None:
        kinds.append((_kind(index, oversample or OVERSAMPLE), oversample or OVERSAMPLE))
    for name, times in kinds:
        exact = cast(VectorFile, base) if name == "exact" and index.quantizer is not None else None
        with steps.step("search" if exact is None else "exact search") as callback:
            parts = FullSearch(index, Q, DEPTH, times).parts(callback)
            if exact is not None:
                parts = _exact_parts(exact, Q, exact_metric(index), callback)
            values, rows = {at: np.empty(len(Q)) for at in (NDCG, RECALL, MRR)}, RowIds(index.ids, n)
            for some, scores, ids in parts:
                places = rows.positions(ids) if exact is None else ids
                for at, own in graded_values(places, judged.grades[some], scores).items():
                    values[at][some] = own
        row: Record = {"search": name, "oversample": times} | {at: float(own.mean()) for at, own in values.items()}
        if best is not None:
            row["change"] = {at: paired_difference(values[at], best[at])._asdict() for at in values}
        best = values if exact is not None else best
        searches.append(row)
    return {"relevance": {"queries": len(Q), "notes": judged.notes, "searches": searches}}


def _exact_parts(base: VectorFile, Q: np.ndarray, metric: str, callback: Callback) -> Iterator[Part]:
    """The exact neighbours to `DEPTH` among the rows of a file, as `with_ties`."""

    def search(some: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        return exact_neighbors(base, Q[some], k, metric, callback).ranked()

    return with_ties(search, len(Q), min(DEPTH, len(base)), len(base))
