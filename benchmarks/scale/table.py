"""Several processes, and engines elsewhere."""

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
    lance = (results.read("export") or {}).get("lance")
    if lance:
        table = Table(
            "export-lance",
            f"Lance, {lance['bytes']} bytes, {lance['lists']} lists, {lance['probes']} probed",
            ["parts", "CPU s to learn and build", "recall@10", "refined", "queries a second"],
            "export",
        )
        ours, own = lance["ours"], lance["lances_own"]
        for name, row, cpu in (
            ("nearkin's", ours, ours["learn_cpu_s"] + ours["export_cpu_s"]),
            ("its own", own, own["learn_and_build_cpu_s"]),
        ):
            recalls = [f"{row[key]:.3f}" for key in ("recall_at_10", "recall_at_10_refine_4")]
            table.rows.append([name, number(cpu), *recalls, number(row["queries_per_s"])])
        yield table
