"""Several processes."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("scale") or {}
    if "rates" in found:
        table = Table(
            "scale-rates",
            "Rows (or pairs) a second, one thread a process",
            ["job", "1 process", "2 processes", "faster by CPU", "faster by the clock"],
            "scale",
        )
        for name, task in found["rates"]["tasks"].items():
            rates = [number(task["count"] / task["seconds"][p]["cpu"]) for p in ("1", "2")]
            times = [f"{task['speedup'][kind]:.2f}x" for kind in ("cpu", "wall")]
            table.rows.append([name, *rates, *times])
        yield table
    if "large" in found:
        large = found["large"]
        table = Table(
            "scale-large",
            f"{large['rows']:,} rows of 64 float16 to 8 bytes",
            ["processes", "seconds", "peak GB a process"],
            "scale",
        )
        table.rows = [
            [p, number(run["wall_seconds"]), f"{run['peak_gb']:.2f}"] for p, run in large["processes"].items()
        ]
        yield table
