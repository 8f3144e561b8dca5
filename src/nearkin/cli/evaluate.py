"""`nearkin evaluate` and `nearkin sweep`: the quality of an index's answers, and the shortest code of a recall."""

from typing import Annotated

import typer

import nearkin as nk
from nearkin import jobs
from nearkin._fields import counted
from nearkin.cli.options import (
    File,
    Index,
    Metric,
    Missing,
    Neighbours,
    OutPage,
    Oversample,
    Overwrite,
    Queries,
    Seed,
    Vectors,
)
from nearkin.cli.screen import Screen, pairs, ranking_table, read_line, table


def evaluate(
    screen: Screen,
    index: Index,
    queries: Queries = None,
    truth: File = None,
    base: File = None,
    labels: File = None,
    query_labels: File = None,
    k: Neighbours = 10,
    oversample: Oversample = None,
    n_probe: Annotated[str | None, typer.Option("--n-probe", metavar="COUNTS")] = None,
    qrels: File = None,
    query_ids: File = None,
    missing: Missing = None,
) -> None:
    """Measure an index: recall against exact neighbours, mAP by label, distortion; or a model of pairs on later pairs.

    "1-recall@k" is the share of queries whose nearest neighbour is among the first k found; "k-recall@k" is the share
    of the k nearest neighbours found. All are of one search for -k neighbours, with the options of `nearkin search`;
    vectors of equal codes are in random order, and recalls are expected values.
    Without QUERIES vectors of --base are the queries, and none is its own neighbour; an index of a folder of pairs uses
    that folder. The result is saved in the index's folder as evaluation.json, for `nearkin report`.

    Examples:

    - nearkin evaluate idx --base X.npy
    - nearkin evaluate idx Q.npy --truth gt.npy
    - nearkin evaluate idx Q.npy --truth gt.npy -k 100 --oversample 4
    - nearkin evaluate emb later.csv

    Options:

    + truth: Ids of each query's exact neighbours, nearest first (.npy, .npz:key, .ivecs, .csv, .parquet).
    + base: The vectors that were indexed: the exact neighbours are searched in them.
    + labels: A label for every indexed vector, in order (file.csv:column), or several: separated by ; or | in the
      cell, or columns of 0 and 1. Vectors that share a label are relevant to each other.
    + query_labels: A label for every query (with --labels).
    - n_probe: Inverted lists to search: several numbers, such as 1,4,16,64, print recall and speed for each.
    - qrels: Relevance judgements (query id, vector id, grade; in TREC's or BEIR's form), for NDCG@10, Recall@100 and
      MRR@10, with the difference from exact search (with --base, or vectors kept in the index).
    """
    if queries is not None and jobs.inputs.holds_pairs(index):
        found = jobs.pairs.evaluate_pairs(index, queries, missing or "raise")
        shown = ranking_table(f"{index}, evaluated on {found['words']}", found["quality"])
        lines = *jobs.pairs.differences_in_words(found["differences"]), read_line(found["understood"])
        screen.finish(found, shown, *lines, *(f"Note: {note}" for note in found["notes"]))
        return
    if all(given is None for given in (queries, base, truth, labels)):
        queries = base = jobs.inputs.pairs_behind(index)
    judged = None if qrels is None else nk.data.read_judgements(qrels)
    asked = None if queries is None else jobs.inputs.open_queries(queries, ids=query_ids)
    Q = None if asked is None else asked.vectors
    n_queries = None if Q is None else len(Q)
    record = jobs.evaluate.evaluate_folder(
        index,
        Q,
        truth=None if truth is None else nk.data.read_neighbors(truth),
        base=None if base is None else jobs.inputs.open_file(base),
        labels=None
        if labels is None
        else nk.data.read_column(labels, jobs.run.read_config(index, "index")["n_rows"], several=True),
        label_ids=None if labels is None else jobs.inputs.ids_of_rows(labels),
        query_labels=None if query_labels is None else nk.data.read_column(query_labels, n_queries, several=True),
        k=k,
        oversample=oversample,
        n_probes=_counts(n_probe),
        judged=judged,
        query_ids=None if asked is None else asked.ids,
        steps=jobs.run.Steps(screen.watch),
        about={"query_file": queries, "threads": screen.threads},
    )
    numbers = {name: value for name, value in record.items() if type(value) in (int, float) and "recall@" not in name}
    tables = [pairs(f"{index}: {record['judged_by']}", numbers)]
    if "searches" in record:
        columns, rows = jobs.evaluate.search_rows(record["searches"])
        turned = [list(cells) for cells in zip(columns, *rows, strict=True)]  # a column per search fits the screen
        tables.append(table(f"Recall of a search for {record['k']}", turned[0], turned[1:]))
        n = min((n for n in range(2, record["k"] + 1) if f"{n}-recall@{n}" in record["searches"][-1]), default=1)
        shares = [row[f"{n}-recall@{n}"] for row in record["searches"]]
        of = record["judged_by"] + ("" if record["n_probe"] is None else f", n_probe {record['n_probe']}")
        tables += [f"{row[0]}: recall@{n} = {x:.3f} of {of}, {row[1]}" for row, x in zip(rows, shares, strict=True)]
    if "probing" in record:
        columns = list(record["probing"][0])
        tables.append(table("Inverted lists searched", columns, [list(row.values()) for row in record["probing"]]))
    if "relevance" in record:
        found = record["relevance"]
        title = f"Relevance of the results of {counted(found['queries'], 'judged query', 'judged queries')}"
        tables += [table(title, *jobs.evaluate.relevance_rows(found)), *found["notes"]]
    has_judge = any(name.startswith(("searches", "relevance", "mAP")) for name in record)
    advice = "" if has_judge else "For the recall give --base VECTORS or --truth FILE; --labels for mAP."
    screen.finish(record, *tables, advice)


def _counts(text: str | None) -> list[int]:
    parts = [] if text is None else text.split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise ValueError(f"--n-probe is {text!r}; it must be a number from 1 on, or several: 1,4,16")
    return [int(part) for part in parts]


def sweep(
    screen: Screen,
    vectors: Vectors,
    queries: File = None,
    recall: Annotated[float | None, typer.Option(min=0.01, max=0.999)] = None,
    k: Neighbours = 10,
    metric: Metric = None,
    per_second: Annotated[float, typer.Option(min=0)] = 0.0,
    ids: File = None,
    query_ids: File = None,
    qrels: File = None,
    out: OutPage = None,
    overwrite: Overwrite = False,
    seed: Seed = 0,
) -> None:
    """Find the code of fewest bytes that reaches a recall, and print the command that makes it.

    The best codec is chosen, as by compress, at 4, 8, 16, 32 and 64 bytes, and at more if these are not sufficient. Two
    results are printed: without rescoring, and with rescoring by vectors kept on disk (search --oversample). Below each
    are the commands that make and evaluate the index.

    In the table, "codes" is the recall without rescoring, "at least" its bound with 97.5 % confidence for queries like
    these, "x4" and "x16" the recall with rescoring of 4 and 16 times k candidates by vectors kept as int8, as float16
    if int8 is not sufficient, or else as float32. A code is sufficient only if "at least" is above the target; more
    queries narrow this bound.

    Examples:

    - nearkin sweep X.npy --queries Q.npy --recall 0.95
    - nearkin sweep data.npz:base --queries data.npz:query --recall 0.9 -k 100 --out sweep.html
    - nearkin sweep X.npy --queries Q.npy --recall 0.9 --per-second 1000
    - nearkin sweep X.parquet --queries Q.parquet --qrels qrels.tsv

    Options:

    + queries: Queries: those of your users. [default: the users of pairs, else vectors held out]
    + recall: Recall to reach, a share of each query's k nearest neighbours; with --qrels, a share of exact search's
      NDCG@10. [default: 0.95, with --qrels 0.99]
    - per_second: Queries per second that an answer must reach on this machine. [default: any]
    - qrels: Relevance judgements (query id, vector id, grade): a code must reach the NDCG@10 of exact search.
    """
    judged = None if qrels is None else nk.data.read_judgements(qrels)
    given = jobs.inputs.open_given(vectors, ids=ids)
    if queries is None and given.queries(metric or given.metric) is not None:
        queries = vectors
    asked = None if queries is None else jobs.inputs.open_queries(queries, ids=query_ids)
    relevance = None
    if judged is not None and asked is not None:
        relevance = jobs.evaluate.Relevance.of(judged, asked.ids, given.ids, len(given.file))
    elif judged is not None:
        raise ValueError("--qrels grades results of queries; give --queries FILE too")
    found = jobs.sweep.sweep(
        given.file,
        None if asked is None else asked.vectors,
        target=recall or (0.95 if qrels is None else 0.99),
        k=k,
        metric=metric or given.metric or "l2",
        rate=per_second,
        judged=relevance,
        random_state=seed,
        steps=jobs.run.Steps(screen.watch),
    )
    record = found.record(vectors, queries) | {"threads": screen.threads, "seed": seed}
    if out is not None:
        jobs.pages.sweep_page(found, vectors, queries).write(out)
    lines = [
        line
        for text, commands in found.answers(vectors, queries, ids=ids, query_ids=query_ids, qrels=qrels)
        for line in (text, *(f"  {command}" for command in commands))
    ]
    shown = table(f"{found.measure}: {found.judged_by()}", *found.rows())
    notes = [*found.notes(), *(relevance.notes if relevance else [])]
    screen.finish(record, shown, read_line(given.about), *lines, *notes)
