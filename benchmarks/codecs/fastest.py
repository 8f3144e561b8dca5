"""Of what `speed` measured: the fastest at equal recall and within equal bytes, as a table and a figure."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import drawing
from benchmarks.table import Results, Table, grouped, number

RECALLS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
BYTES = (16, 32, 64, 160, 320, 1_000)
KINDS = {  # by the first words of an engine's name, the longest first
    "ours": "ours", "FAISS HNSW": "HNSW", "FAISS exact": "exact search", "FAISS": "FAISS's codes", "ScaNN": "ScaNN",
    "usearch": "usearch, bytes",
}  # fmt: skip
SOURCES = {f"codecs_speed_{power}": f"10^{power}" for power in (5, 6, 7)} | {
    "codecs_speed_5_sse4": "10^5, SSE4", "codecs_speed_6_avx512": "10^6, AVX-512, older code"
}  # fmt: skip


def kind(codec: str) -> str:
    return next(name for start, name in KINDS.items() if codec.startswith(start))


def curves(row: dict[str, Any], most: float) -> Iterator[tuple[list[float], list[float]]]:
    """Recalls, which rise, and queries a second of an engine's points of at most so many bytes: a curve for each number
    of candidates that are re-ranked; without lists all of them are one curve."""
    groups: dict[Any, list[Any]] = {}
    for point in row.get("points", []):
        effort = point["effort"]
        lists, again = effort if isinstance(effort, list) else (0, 0)
        if point["bytes"] <= most:
            groups.setdefault((point["bytes"], again if lists else 0), []).append(point)
    for points in groups.values():
        points.sort(key=lambda point: point["recall"])
        yield [point["recall"] for point in points], [point["per_second"] for point in points]


def fastest(rows: list[dict[str, Any]], most: float) -> list[float]:
    """The most queries a second at each of `RECALLS`, between two points by their logarithms; 0: not reached."""
    best = np.zeros(len(RECALLS))
    for recalls, speeds in (curve for row in rows for curve in curves(row, most)):
        own = np.exp(np.interp(RECALLS, recalls, np.log(speeds)))
        best = np.maximum(best, np.where(np.array(RECALLS) <= recalls[-1], own, 0))
    return best.tolist()


def table(results: Results) -> Table:
    """A line for each kind at each number of rows, threads and bytes; above the others' best, ours as a multiple."""
    found = Table(
        "codecs-speed",
        "Queries a second at a recall 10@10 within some bytes a vector, SIFT, the fastest of each kind",
        ["rows", "threads", "bytes, at most", "kind", *(f"at {recall}" for recall in RECALLS)],
        "codecs_speed_5",
        "'-': not reached; 0: not by ours.",
    )
    for source, size in SOURCES.items():
        measured = grouped([row for row in results.read(source) or [] if "points" in row], "threads")
        for ((threads,), rows), most in product(sorted(measured.items()), BYTES):
            kinds = {
                name: fastest([row for row in rows if kind(row["codec"]) == name], most) for name in KINDS.values()
            }
            before = [size, str(threads), str(most)]
            others = np.max([speeds for name, speeds in kinds.items() if name != "ours"], axis=0)
            ratios = [
                ours / best if best else np.inf if ours else np.nan
                for ours, best in zip(kinds["ours"], others, strict=True)
            ]
            if any(kinds["ours"]) and np.isfinite(ratios).any():
                cells = ["alone" if ratio == np.inf else number(float(ratio)) for ratio in ratios]
                found.rows.append([*before, "ours / the best other", *cells])
            for name, speeds in kinds.items():
                if any(speeds):
                    found.rows.append([*before, name, *(number(speed or None, 3) for speed in speeds)])
    return found


def draw(results: Results) -> Path:
    """One thread: a panel for each number of rows at which ours were measured on AVX2, the fastest of each kind within
    160 bytes, and graphs, which need more."""
    sizes = {source: size for source, size in SOURCES.items() if "," not in size}
    found = {size: [row for row in results.read(name) or [] if "points" in row] for name, size in sizes.items()}
    measured = {size: rows for size, rows in found.items() if any(kind(row["codec"]) == "ours" for row in rows)}
    figure, (axes,) = drawing.panels(1, len(measured), 4.2, 4.2, sharey=True)
    roles = dict.fromkeys(KINDS.values(), drawing.REST) | {"ours": drawing.OURS, "FAISS's codes": drawing.RIVAL}
    for panel, (size, rows) in zip(axes, measured.items(), strict=True):
        for name, style in drawing.styles(roles).items():
            own = [row for row in rows if row.get("threads") == 1 and kind(row["codec"]) == name]
            speeds = fastest(own, 1_000 if name in ("HNSW", "usearch, bytes", "exact search") else 160)
            shown = [(recall, speed) for recall, speed in zip(RECALLS, speeds, strict=True) if speed]
            if shown:
                panel.plot(*zip(*shown, strict=True), **style)
        panel.set(yscale="log", xlabel="recall 10@10", title=f"{size} rows")
        drawing.legend(panel, loc="lower left")
    axes[0].set_ylabel("queries a second of one thread")
    return drawing.save(figure, "codecs_speed")
