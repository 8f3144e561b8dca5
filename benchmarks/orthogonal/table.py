"""Steps on the manifold, and loss against time."""

import math
import statistics
from collections.abc import Iterable
from typing import Any

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("orthogonal_1t") or results.read("orthogonal_quick_1t")
    if found:
        sizes = list(found["sizes"])
        names = list(dict.fromkeys(name for size in sizes for name in found["sizes"][size]))
        table = Table(
            "orthogonal-step", "One step from a given gradient, CPU ms, one thread", ["method", *sizes], "orthogonal_1t"
        )
        table.rows = [
            [name, *(number((found["sizes"][size].get(name) or {}).get("ms")) for size in sizes)] for name in names
        ]
        yield table
    yield from kinds({kind: results.read(f"orthogonal_{kind}_1t") for kind in ("AVX-512", "AVX2", "SSE")})
    yield from tasks(results.read("orthogonal_tasks") or results.read("orthogonal_tasks_quick") or {})
    yield from tasks(results.read("orthogonal_tasks_2t") or {}, threads=2)
    for name in (f"orthogonal_language_model{suffix}" for suffix in ("", "_3bits", "_d64")):
        yield from language_model(name, results.read(name) or {})
    yield from small(results.read("orthogonal_small") or {})
    yield from adapters(results.read("orthogonal_adapters") or {})


def kinds(found: dict[str, Any]) -> Iterable[Table]:
    """One step by the kind of CPU, beside a plain copy."""
    found = {kind: record["sizes"] for kind, record in found.items() if record}
    if not found:
        return
    columns = [f"{size}, {kind}" for kind, sizes in found.items() for size in sizes]
    title = "One step by the kind of CPU: ms, one thread (plain copies of the matrix)"
    table = Table("orthogonal-step-kinds", title, ["method", *columns], f"orthogonal_{next(iter(found))}_1t")
    blocks = [rows for sizes in found.values() for rows in sizes.values()]
    for name in dict.fromkeys(name for rows in blocks for name in rows):
        times = [(rows.get(name, {}).get("ms"), rows["plain copy"]["ms"]) for rows in blocks]
        table.rows.append([name, *(f"{number(ms)} ({number(ms / copy)})" if ms else "-" for ms, copy in times)])
    yield table


def tasks(found: dict[str, dict], threads: int = 1) -> Iterable[Table]:
    """One table of all tasks: CPU ms to the target and, in brackets, how many times faster than POGO's rule, with the
    lowest and highest ratio of five seeds or more."""
    if not found:
        return
    name, of = ("orthogonal_tasks", "") if threads == 1 else (f"orthogonal_tasks_{threads}t", f" of {threads} threads")
    table = Table(
        name.replace("_", "-"),
        f"Loss against time: CPU ms{of} to the target (times POGO's rule)",
        ["method", *found],
        name,
        '"no": not within the time; a dash: not run.',
    )
    cells: dict[str, dict[str, str]] = {}
    wins: dict[str, float] = {}
    for task, record in found.items():
        pogo = record["methods"].get("POGO's rule", {}).get("seconds") or math.inf
        for name, row in record["methods"].items():
            seconds = row.get("seconds") or math.inf
            reached = math.isfinite(seconds)
            faster = f" ({pogo / seconds:.2f}{_span(row, record)})" if reached and math.isfinite(pogo) else ""
            cells.setdefault(name, {})[task] = f"{number(1e3 * seconds)}{faster}" if reached else "no"
            wins[name] = wins.get(name, 0) + (pogo / seconds if faster else 0)
    for name in sorted(cells, key=lambda name: -wins[name]):
        table.rows.append([name, *(cells[name].get(task, "-") for task in found)])
    yield table


def _span(row: dict[str, Any], record: dict[str, Any]) -> str:
    """Lowest and highest ratio of POGO's time to the row's, seed by seed."""
    pairs = list(zip(record["methods"]["POGO's rule"]["all"], row["all"], strict=False))
    ratios = [peer / own if math.isfinite(own) else 0.0 for peer, own in pairs]
    alone = len(ratios) < 5 or row is record["methods"]["POGO's rule"]
    return "" if alone else f", {min(ratios):.2f}-{max(ratios):.2f}"


def language_model(name: str, found: dict[str, Any]) -> Iterable[Table]:
    """Loss and perplexity of the rounded network, and CPU seconds to SGDG's final loss."""
    if not found:
        return
    columns = ["rotations", "loss", "sd", "perplexity", "CPU s", "of it steps", "s to SGDG's loss", "R'R - I", "lr"]
    shape = ", d = 64, 3 bits" if name.endswith("d64") else ", d = 256, " + ("3 bits" if "3bits" in name else "4 bits")
    title = f"Rotations of a rounded language model{shape}"
    table = Table(name.replace("_", "-"), title, columns, name, "Means of the seeds; the error is the largest.")
    target = _best_sgdg(found)
    for name, row in found.items():
        runs = row["runs"]
        losses = [run["loss"] for run in runs]
        spread = statistics.stdev(losses) if len(losses) > 1 else 0.0
        mean = statistics.mean(losses)
        cells = [name, f"{mean:.4f}", f"{spread:.4f}", f"{math.exp(mean):.3f}"]
        if "lr" in row:
            took, stepping = (statistics.mean(run[key] for run in runs) for key in ("seconds", "stepping"))
            reached = time_to(_mean_curve(runs), target)
            error = max(run["orthogonality"] for run in runs)
            cells += [number(took), number(stepping), number(reached), f"{error:.1e}", number(row["lr"])]
        table.rows.append([*cells, *["-"] * (len(columns) - len(cells))])
    yield table


def _best_sgdg(found: dict[str, Any]) -> float:
    """The lower of SGDG's mean final losses, with and without momentum."""
    rows = [row for name, row in found.items() if name.startswith("SGDG") and "half" not in name]
    return min((statistics.mean(run["loss"] for run in row["runs"]) for row in rows), default=math.nan)


def _mean_curve(runs: list[dict[str, Any]]) -> list[list[float]]:
    """The mean over the seeds of time and of loss, point by point."""
    return [
        [statistics.mean(values) for values in zip(*points, strict=True)]
        for points in zip(*(run["curve"] for run in runs), strict=False)
    ]


def time_to(curve: list[list[float]], target: float) -> float:
    """When the curve first is at the target; infinite if never."""
    return next((spent for spent, loss in curve if loss <= target), math.inf)


def small(found: dict[str, dict[str, Any]]) -> Iterable[Table]:
    """Milliseconds to the target on small matrices and the ratio to POGO's rule, by task and kind of CPU."""
    if not found:
        return
    title = "Small matrices: median CPU ms to the target (POGO's rule over it: median, lowest and highest of the seeds)"
    columns = ["method", *(f"{task}, {kind}" for kind, tasks in found.items() for task in tasks)]
    note = "POGO's rule is an infinite number where it did not reach the target in time."
    table = Table("orthogonal-small", title, columns, "orthogonal_small", note)
    names = dict.fromkeys(name for tasks in found.values() for rows in tasks.values() for name in rows)
    for name in names:
        cells = []
        for rows in (rows for tasks in found.values() for rows in tasks.values()):
            times = rows.get(name, {}).get("seconds")
            pogo = rows.get("POGO's rule", {}).get("seconds")
            if not times or not pogo:
                cells.append("-")
                continue
            ratios = sorted(p / t for t, p in zip(times, pogo, strict=True) if not math.isinf(t))
            spread = f" ({statistics.median(ratios):.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f})" if ratios else ""
            cells.append(number(1e3 * statistics.median(times)) + ("" if name == "POGO's rule" else spread))
        table.rows.append([name, *cells])
    yield table


def adapters(found: dict[str, Any]) -> Iterable[Table]:
    """Orthogonal fine-tuning: one rotation by its block size and norm, and a small transformer."""
    if found.get("rotation"):
        title = "Block rotations, d = 512, 256 vectors: CPU ms of forward and backward (error of R)"
        table = Table("orthogonal-rotation", title, ["method", *found["rotation"]], "orthogonal_adapters")
        for name in next(iter(found["rotation"].values())):
            rows = [row[name] for row in found["rotation"].values()]
            table.rows.append([name, *(f"{number(row['ms'])} ({row['error']:.0e})" for row in rows)])
        yield table
    if found.get("transformer"):
        title = "Orthogonal fine-tuning of a small transformer, 2,000 steps"
        columns = ["method", "lr", "loss before", "loss after", "CPU s", "MB kept for backward", "error of R"]
        table = Table("orthogonal-adapters", title, columns, "orthogonal_adapters", "Means over fresh seeds.")
        for name, row in found["transformer"].items():
            mean = {key: statistics.mean(run[key] for run in row["runs"]) for key in row["runs"][0]}
            cells = [number(row["lr"]), f"{mean['before']:.3f}", f"{mean['loss']:.3f}", number(mean["seconds"])]
            table.rows.append([name, *cells, f"{mean['kept'] / 1e6:.2f}", f"{mean['drift']:.0e}"])
        yield table
