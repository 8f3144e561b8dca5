"""Several processes."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("scale") or {}
    if "rates" in found:
        columns = ["job", "1 process", "2 processes", "faster by CPU", "faster by the clock"]
        table = Table("scale-rates", "Rows (or pairs) a second, one thread a process", columns, "scale")
        for name, task in found["rates"]["tasks"].items():
            rates = [number(task["count"] / task["seconds"][p]["cpu"]) for p in ("1", "2")]
            table.rows.append([name, *rates, *(f"{task['speedup'][kind]:.2f}x" for kind in ("cpu", "wall"))])
        yield table
    if "large" in found:
        large, columns = found["large"], ["processes", "seconds", "peak GB a process"]
        table = Table("scale-large", f"{large['rows']:,} rows of 64 float16 to 8 bytes", columns, "scale")
        runs = large["processes"].items()
        table.rows = [[p, number(run["wall_seconds"]), f"{run['peak_gb']:.2f}"] for p, run in runs]
        yield table
