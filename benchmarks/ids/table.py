"""Makers of semantic ids: sharing and use of the codes, and a decoder that writes the ids."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import stdtrit

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
    found = results.read("ids_decoder")
    if found:
        table = Table(
            "ids-decoder",
            "The last item of 943 or 1,000 people by a small decoder that writes ids",
            [
                "data",
                "ids, vectors",
                "tokens",
                "Recall@10",
                "NDCG@10",
                "seeds",
                "Recall@10 less that of nearkin, towers",
            ],
            "ids_decoder",
            "Means of the seeds, and 95 % intervals over people; differences with 95 % intervals over the seeds.",
        )
        for key in sorted({(row["set"], row["ids"]) for row in found}, key=lambda key: (key[0] != "ml100k", key[1])):
            own = [row for row in found if (row["set"], row["ids"]) == key]
            cells = []
            for place, measure in enumerate(("recall@10", "ndcg@10")):
                half = 1.96 * np.mean([row["errors"][place] for row in own])
                cells.append(f"{np.mean([row[measure] for row in own]):.4f} ± {half:.4f}")
            less = _difference(found, key, (key[0], "nearkin, towers"))
            table.rows.append([*key[:1], key[1], str(own[0]["tokens"]), *cells, str(len(own)), less])
        yield table


def _difference(found: list[dict[str, Any]], one: tuple[str, str], other: tuple[str, str]) -> str:
    """The mean difference of Recall@10 in the seeds that both have, and its interval by Student's t."""
    rows = [{row["seed"]: row["recall@10"] for row in found if (row["set"], row["ids"]) == key} for key in (one, other)]
    differences = [rows[0][seed] - rows[1][seed] for seed in rows[0] if seed in rows[1]]
    if one == other or len(differences) < 2:
        return "-"
    mean, error = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(len(differences))
    low, high = mean + stdtrit(len(differences) - 1, [0.025, 0.975]) * error
    return f"{mean:+.4f} ({low:+.4f} to {high:+.4f})"
