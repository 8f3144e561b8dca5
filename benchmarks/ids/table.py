"""Makers of semantic ids: sharing and use of the codes, and recommendations by them."""

from collections.abc import Iterable

import numpy as np

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("ids_makers")
    if found:
        table = Table(
            "ids-makers",
            "Semantic ids of 40,000 sentence vectors, three codes of 256 values",
            [
                "maker",
                "share an id",
                "perplexity of each level",
                "error",
                "after all differ",
                "tokens",
                "1 code",
                "2",
                "s",
            ],
            "ids_makers",
            "The last columns: neighbours of ten that share one and two codes, CPU seconds.",
        )
        for row in found:
            levels = " ".join(f"{value:.0f}" for value in row["perplexity"])
            tokens = f"{row['tokens']} ({row['counters']} counters)" if row["counters"] else str(row["tokens"])
            error = [f"{value:.4f}" for value in row["error"]]
            kept = [f"{value:.3f}" for value in row["kept"][:2]]
            table.rows.append(
                [row["maker"], f"{row['shared']:.1%}", levels, *error, tokens, *kept, number(row["seconds"])]
            )
        yield table
    found = results.read("ids_together")
    if found:
        table = Table(
            "ids-together",
            "Recommendations by the rows that three codes of 32 values decode to",
            ["data", "right rows", "Recall@20", "NDCG@20", "s"],
            "ids_together",
            "Means of the seeds; CPU seconds of the ids alone, or of towers and ids.",
        )
        for key in dict.fromkeys((row["set"], row["search"]) for row in found):
            own = [row for row in found if (row["set"], row["search"]) == key]
            means = [np.mean([row[name] for row in own]) for name in ("recall@20", "ndcg@20", "seconds")]
            table.rows.append([*key, f"{means[0]:.4f}", f"{means[1]:.4f}", number(means[2]) if means[2] else "-"])
        yield table
