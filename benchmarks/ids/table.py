"""Makers of semantic ids: sharing and use of the codes, and a decoder that writes the ids."""

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
    found = results.read("ids_decoder")
    if found:
        seeds = len({row["seed"] for row in found})
        table = Table(
            "ids-decoder",
            "The last item of 943 people by a small decoder that writes ids",
            ["ids, vectors", "tokens", "Recall@10", "NDCG@10"],
            "ids_decoder",
            f"Means of {seeds} seeds, and 95 % intervals over people.",
        )
        for name in dict.fromkeys(row["ids"] for row in found):
            own = [row for row in found if row["ids"] == name]
            cells = []
            for place, measure in enumerate(("recall@10", "ndcg@10")):
                half = 1.96 * np.mean([row["errors"][place] for row in own])
                cells.append(f"{np.mean([row[measure] for row in own]):.4f} ± {half:.4f}")
            table.rows.append([name, str(own[0]["tokens"]), *cells])
        yield table
