"""Vectors from comparisons: the tables."""

from collections.abc import Iterable

from benchmarks.ordinal import question_tables
from benchmarks.table import Results, Table, number, ratio


def tables(results: Results) -> Iterable[Table]:
    yield from speed(results)
    yield from table1(results)
    yield from question_tables.tables(results)


def speed(results: Results) -> Iterable[Table]:
    found = results.read("ordinal_speed")
    if not found:
        return
    table = Table(
        "ordinal-speed",
        "CPU ms until held-out error 0.15 (final error in brackets), p = 10",
        ["objects, answers", "loss", "default", "SVRG-SBB", "cblearn", "default faster", "SVRG-SBB faster"],
        "ordinal_speed",
    )
    for row in found["rows"]:
        ours, peer = row["nearkin"], row.get("cblearn") or {}
        theirs = peer.get("seconds_to_target")
        theirs = 1e3 * theirs if theirs else None
        cells = [f"{number(ours[s]['ms'])} ({ours[s]['error']:.3f})" for s in ("auto", "svrg-sbb")]
        shown = f"{number(theirs)} ({peer['error']:.3f})" if "error" in peer else "not installed"
        times = [ratio(theirs, ours[s]["ms"]) for s in ("auto", "svrg-sbb")]
        table.rows.append([f"{row['n']:,}, {row['m']:,}", row["loss"], *cells, shown, *times])
    yield table


def table1(results: Results) -> Iterable[Table]:
    """SVRG-SBB's Table I: losses down, solvers across."""
    found = results.read("ordinal_table1")
    if not found:
        return
    rows = {(row["loss"], row["method"]): row for row in found["rows"]}
    shown = (
        "svrg published step",
        "svrg hand-tuned",
        "svrg-sbb b=1",
        "svrg-sbb b=100",
        "adagrad, then svrg-sbb",
        "cblearn",
    )
    table = Table(
        "ordinal-table1",
        f"SVRG-SBB, Table I: CPU ms to error {found['target']}, mean ± deviation of {found['seeds']} seeds (final)",
        ["loss", *shown],
        "ordinal_table1",
    )
    for loss in dict.fromkeys(loss for loss, _ in rows):
        table.rows.append([loss, *(table1_cell(rows.get((loss, method))) for method in shown)])
    yield table


def table1_cell(row: dict | None) -> str:
    if row is None:
        return "-"
    time = f"{number(row['mean'])} ± {number(row['std'], 2)}" if row["reached"] == row["of"] else "not reached"
    return f"{time} ({row['final_error']:.3f})"
