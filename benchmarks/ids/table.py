"""Makers of semantic ids: sharing and use of the codes, and recommendations by them."""

from collections.abc import Iterable
from typing import Any

from benchmarks.table import Results, Table, grouped, mean, number, plain


def tables(results: Results) -> Iterable[Table]:
    columns = "maker | share an id | perplexity of each level | error | after all differ | tokens | 1 code | 2 | s"
    title = "Semantic ids of 40,000 sentence vectors, three codes of 256 values"
    note = "The last columns: neighbours of ten that share one and two codes, CPU seconds."
    yield from plain(results.read("ids_makers"), "ids-makers", title, columns, _maker, note=note)
    found = results.read("ids_together")
    if found:
        title = "Recommendations by the rows that three codes of 32 values decode to"
        columns = ["data", "right rows", "Recall@20", "NDCG@20", "s"]
        table = Table("ids-together", title, columns, "ids_together")
        table.note = "Means of the seeds; CPU seconds of the ids alone, or of towers and ids."
        for key, rows in grouped(found, "set", "search").items():
            seconds = sum(row["seconds"] for row in rows) / len(rows)
            measures = [mean(rows, measure, 4) for measure in ("recall@20", "ndcg@20")]
            table.rows.append([*key, *measures, number(seconds) if seconds else "-"])
        yield table


def _maker(row: dict[str, Any]) -> list[str]:
    levels = " ".join(f"{value:.0f}" for value in row["perplexity"])
    tokens = f"{row['tokens']} ({row['counters']} counters)" if row["counters"] else str(row["tokens"])
    error, kept = [f"{value:.4f}" for value in row["error"]], [f"{value:.3f}" for value in row["kept"][:2]]
    return [row["maker"], f"{row['shared']:.1%}", levels, *error, tokens, *kept, number(row["seconds"])]
