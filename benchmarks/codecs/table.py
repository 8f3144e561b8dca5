"""Codes of every kind at every size, ours beside FAISS's and ScaNN's."""

from collections.abc import Iterable
from typing import Any

from scipy.stats import ttest_rel

from benchmarks.codecs.problems import SETS
from benchmarks.table import Results, Table, number

Row = dict[str, Any]


def measured(results: Results) -> list[Row]:
    """The rows of all sets, a size after the other."""
    found = [row for name in SETS for row in results.read(f"codecs_{name}") or []]
    return sorted(found, key=lambda row: (SETS.index(row["data"]), row["bits"]))  # stable: as they ran


def leaders(rows: list[Row]) -> dict[str, Row]:
    """Of the rows of one set and size that have a recall, what is compared: the best of each family."""
    families = {
        "ours, best": "ours, best", "ours, product": "ours, product", "FAISS, its best": "FAISS",
        "FAISS OPQ": "FAISS OPQ", "ScaNN": "ScaNN",
    }  # fmt: skip
    found: dict[str, Row] = {}
    for family, name in families.items():
        own = [row for row in rows if row["codec"].startswith(name)]
        if own:
            found[family] = max(own, key=lambda row: row["recall"])
    return found


def tables(results: Results) -> Iterable[Table]:
    found = measured(results)
    if not found:
        return
    yield _best(found)
    yield _every(found)
    pairs = results.read("codecs_pairs")
    if pairs:
        yield _pairs(pairs)


def _best(found: list[Row]) -> Table:
    """A row a size: what `best` gives beside the best of FAISS."""
    table = Table(
        "codecs-best",
        "What nk.quantization.best gives beside the best FAISS codec that finished at those bytes (recall 10@10)",
        [
            "data", "bytes", "ours, best", "recall", "CPU s, the race included", "FAISS's best", "recall", "CPU s",
            "ours above",
        ],
        "codecs_sift",
    )  # fmt: skip
    for data, bits in dict.fromkeys((row["data"], row["bits"]) for row in found):
        rows = [row for row in found if (row["data"], row["bits"]) == (data, bits)]
        lead = leaders([row for row in rows if "recall" in row])
        ours, peer = lead.get("ours, best"), lead.get("FAISS, its best")
        if ours and peer:
            kinds = ours["codec"].removeprefix("ours, best: "), peer["codec"].removeprefix("FAISS ")
            table.rows.append([
                data, str(peer["bytes"]), kinds[0], number(ours["recall"]), number(ours["train_seconds"]), kinds[1],
                number(peer["recall"]), number(peer["train_seconds"]),
                f"{100 * (ours['recall'] - peer['recall']):+.1f} points",
            ])  # fmt: skip
    return table


def _every(found: list[Row]) -> Table:
    table = Table(
        "codecs",
        "Neighbours kept by codes alone (recall 10@10) of rows that were not learned from, one thread",
        ["data", "bytes", "codec", "recall", "training: CPU s", "encoding: µs a row", "search: µs a query"],
        "codecs_sift",
        "ScaNN learns from the rows that it searches.",
    )
    for row in found:
        times = (row.get(name) for name in ("train_seconds", "encode_microseconds", "search_microseconds"))
        kept = number(row["recall"]) if "recall" in row else row["note"]
        size = str(row.get("bytes", "-"))
        table.rows.append([row["data"], size, row["codec"], kept, *map(number, times)])
    return table


def _pairs(found: list[Row]) -> Table:
    """Means over the seeds that ran, and the p-value of a paired t test against OPQ."""
    table = Table(
        "codecs-pairs",
        "Answers among the ten nearest by codes, sentences against glosses",
        ["bytes", "seeds", "OPQ", "queries mapped", "rows mapped too: PairMap", "above OPQ", "p", "fit: CPU s"],
        "codecs_pairs",
    )
    for size in sorted({row["bytes"] for row in found}):
        rows = [row for row in found if row["bytes"] == size]
        plain, queries, maps = ([row[way] for row in rows] for way in ("OPQ", "queries mapped", "PairMap"))
        means = [sum(values) / len(rows) for values in (plain, queries, maps)]
        p = number(float(ttest_rel(maps, plain).pvalue), 2) if len(rows) > 1 else "-"
        seconds = number(sum(row["seconds"] for row in rows) / len(rows))
        gain = f"{100 * (means[2] - means[0]):+.1f} points"
        table.rows.append([str(size), str(len(rows)), *map(number, means), gain, p, seconds])
    return table
