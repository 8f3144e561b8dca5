"""Codes of every kind at every size, ours beside FAISS's and ScaNN's."""

from collections.abc import Iterable, Sequence
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from benchmarks.codecs import fastest
from benchmarks.data import SETS
from benchmarks.table import Results, Table, grouped, number, plain

Row = dict[str, Any]
_OURS = "ours, Index.build"
_JUDGED = ("recall", "at_length", "note")  # of a codec, the first that its row has


def measured(results: Results) -> list[Row]:
    """The rows of all sets, a size after the other."""
    found = [row for name in SETS for row in _beside_pq(results.read(f"codecs_{name}") or [], "bits")]
    return sorted(found, key=lambda row: (SETS.index(row["data"]), row["bits"]))  # stable: as they ran


def leaders(rows: list[Row]) -> dict[str, Row]:
    """Of the rows of one set and size that have a recall, what is compared: the best of each family."""
    families = {
        "ours, best": "ours, best", "ours, compress": "ours, compress", "ours, product": "ours, ProductQuantizer",
        "FAISS, its best": "FAISS", "FAISS OPQ": "FAISS OPQ", "ScaNN": "ScaNN",
    }  # fmt: skip
    found: dict[str, Row] = {}
    for family, name in families.items():
        own = [row for row in rows if row["codec"].startswith(name)]
        if own:
            found[family] = max(own, key=lambda row: row["recall"])
    return found


def tables(results: Results) -> Iterable[Table]:
    sets = grouped(_beside_pq(results.read("codecs_plain") or [], "data", "seed"), "data").values()
    compared = [{"rows": rows} for rows in sets if len({row["asked"] for row in rows}) > 1]
    columns = "data | bytes | seeds | Index.build | FAISS | its recall@10 | difference | CPU s | its CPU s"
    columns += " | 1-recall@1 | its 1-recall@1 | error over PQ's | its error over PQ's"
    columns += " | bytes with codebooks | its bytes with codebooks"
    title = "The plain call and FAISS's strongest code of as many bytes (recall@10 without rescoring; means of seeds)"
    note = (
        "The strongest of those measured: OPQ, residual codes by beams of 5 and 32, LSQ on SIFT; norms that differ in "
        "a byte. Codebooks of rows without a 1-recall@1 are counted from the code's shape."
    )
    yield from plain(compared, "codecs-plain", title, columns, _plain_call, note=note)
    found = measured(results)
    if not found:
        return
    yield _best(found)
    columns = "data | bytes | codec | recall | training: CPU s | encoding: µs a vector | search: µs a query"
    columns += " | 1-recall@1 | error over PQ's | bytes with codebooks"
    title = "recall@10 without rescoring of vectors that were not trained on, one thread"
    yield from plain(
        found, "codecs", title, columns, _code, "codecs_sift", "ScaNN learns from the rows that it searches."
    )
    columns = "data | bits a column | code | bytes | bytes with codebooks | recall | fit: s | search: s"
    title = "Codes of 1 to 4 bits a column (recall 10@10, CPU seconds of one thread: the fit, and 1,000 queries)"
    yield from plain(results.read("codecs_axes"), "codecs-axes", title, columns, _axis_code)
    speed = fastest.table(results)
    if speed.rows:
        yield speed


def _code(row: Row) -> list[str]:
    more = ("train_seconds", "encode_microseconds", "search_microseconds", "first", "over_pq", "with_codebooks")
    kept = next(number(row[name]) if name != "note" else row[name] for name in _JUDGED if name in row)
    return [row["data"], str(row.get("bytes", "-")), row["codec"], kept, *map(number, map(row.get, more))]


def _beside_pq(rows: list[Row], *keys: str) -> list[Row]:
    """The rows with their squared error over that of FAISS's product codes where `keys` are the same, "over_pq"."""
    plain = {tuple(row[key] for key in keys): row["distortion"] for row in rows if row["codec"] == "FAISS PQ"}
    return [
        row | {"over_pq": row["distortion"] / error}
        if (error := plain.get(tuple(row[key] for key in keys))) and "distortion" in row
        else row
        for row in rows
    ]


def _axis_code(row: Row) -> list[str]:
    kept = number(row["recall"]) if row["recall"] is not None else row["note"]
    whole, *times = (number(row.get(name)) for name in ("with_codebooks", "fit", "search"))
    return [row["set"], str(row["bits"]), row["code"], str(row.get("bytes", "-")), whole, kept, *times]


def _best(found: list[Row]) -> Table:
    """A row a size: plain calls, FAISS's OPQ and its best codec, alone and with rows at their own length."""
    table = Table(
        "codecs-best",
        "Plain calls and the best FAISS codec that finished at those bytes (recall 10@10, CPU seconds of learning)",
        [
            "data", "bytes", "ProductQuantizer", "its s", "FAISS's OPQ", "OPQ's s", "compress chose", "compress",
            "compress' s", "best chose", "best", "best's s", "FAISS's codec", "FAISS's best", "FAISS's s",
            "FAISS with norms", "compress above", "bytes with codebooks", "FAISS's with codebooks",
        ],
        "codecs_sift",
    )  # fmt: skip
    for data, bits in dict.fromkeys((row["data"], row["bits"]) for row in found):
        rows = [row for row in found if (row["data"], row["bits"]) == (data, bits)]
        lead = leaders([row for row in rows if "recall" in row])
        if not {"ours, compress", "ours, best", "ours, product", "FAISS OPQ"} <= lead.keys():
            continue
        chosen, best, plain, opq, peer = (
            lead[name] for name in ("ours, compress", "ours, best", "ours, product", "FAISS OPQ", "FAISS, its best")
        )
        at_length = max((row["at_length"] for row in rows if "at_length" in row), default=None)
        strongest = max(peer["recall"], at_length or 0)
        table.rows.append([
            data, str(peer["bytes"]), *_told(plain), *_told(opq), _kind(chosen), *_told(chosen),
            _kind(best), *_told(best), _kind(peer), *_told(peer), number(at_length),
            f"{100 * (chosen['recall'] - strongest):+.1f} points",
            number(chosen.get("with_codebooks")), number(peer.get("with_codebooks")),
        ])  # fmt: skip
    return table


def _told(row: Row) -> tuple[str, str]:
    return number(row["recall"]), number(row["train_seconds"])


def _kind(row: Row) -> str:
    """The code that was chosen, or FAISS's codec."""
    return row["codec"].rpartition(": ")[2].removeprefix("FAISS ")


def _plain_call(found: Row) -> list[str]:
    """A line of one set: FAISS's code with the highest mean recall, and the seeds with which both ran."""
    rows: list[Row] = found["rows"]
    runs = {name: {row["seed"]: row for row in own} for (name,), own in grouped(rows, "codec").items()}
    ours = {seed: row for name in [*runs] if name.startswith(_OURS) for seed, row in runs.pop(name).items()}
    rival = max(runs.values(), key=lambda own: mean(map(_most, own.values())))
    pairs = [(ours[seed], row) for seed, row in rival.items() if seed in ours]
    sides = [*zip(*pairs, strict=True)]
    own, theirs = (np.array([_most(row) for row in side]) for side in sides)
    spread = ""
    if len(pairs) > 1:
        low, high = ttest_rel(own, theirs).confidence_interval()
        spread = f" ± {50 * (high - low):.1f}"
    times = (mean(map(_seconds, side)) for side in sides)
    more = (_mean(side, name) for name in ("first", "over_pq", "with_codebooks") for side in sides)
    data, n_bytes = rows[0]["data"].rsplit(", ", 1)
    return [
        data, n_bytes, str(len(pairs)), number(own.mean()), _kind(pairs[0][1]), number(theirs.mean()),
        f"{100 * (own - theirs).mean():+.1f}{spread} points", *map(number, times), *map(number, more),
    ]  # fmt: skip


def _mean(rows: Sequence[Row], name: str) -> float | None:
    """The mean over seeds where all have it."""
    return mean(row[name] for row in rows) if all(name in row for row in rows) else None


def _most(row: Row) -> float:
    return max(row.get("recall", 0.0), row.get("at_length", 0.0))


def _seconds(row: Row) -> float:
    """Of training, and of encoding all vectors that are found."""
    return row["train_seconds"] + 1e-6 * row["vectors"] * row["encode_microseconds"]
