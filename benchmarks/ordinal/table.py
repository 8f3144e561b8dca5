"""Vectors from comparisons: the tables."""

from collections.abc import Iterable

from benchmarks.ordinal.questions import BUDGETS, RULES, needed
from benchmarks.table import Results, Table, number, ratio


def tables(results: Results) -> Iterable[Table]:
    found = results.read("ordinal_speed")
    if found:
        table = Table(
            "ordinal-speed",
            "CPU ms until held-out error 0.15 (final error in brackets), p = 10",
            ["objects, answers", "loss", "default", "SVRG-SBB", "cblearn", "default faster", "SVRG-SBB faster"],
            "ordinal_speed",
        )
        for row in found:
            ours, peer = row["nearkin"], row.get("cblearn") or {}
            theirs = peer.get("seconds_to_target")
            theirs = 1e3 * theirs if theirs else None
            cells = [f"{number(ours[s]['ms'])} ({ours[s]['error']:.3f})" for s in ("auto", "svrg-sbb")]
            shown = f"{number(theirs)} ({peer['error']:.3f})" if "error" in peer else "not installed"
            times = [ratio(theirs, ours[s]["ms"]) for s in ("auto", "svrg-sbb")]
            table.rows.append([f"{row['n']:,}, {row['m']:,}", row["loss"], *cells, shown, *times])
        yield table
    found = results.read("ordinal_questions")
    if found:
        seeds = f"(mean of {found[0]['seeds']} seeds)"
        title = f"error after 16, 24, 30 and 40 answers an object, a fifth of them wrong {seeds}"
        columns = ["data", "loss", *("random", "chosen"), "answers for random's error at 30", "at 40"]
        table = Table("ordinal-questions", title, columns, "ordinal_questions")
        errors = {(row["data"], row["loss"], row["rule"]): row["error"] for row in found}
        for data, loss in dict.fromkeys(key[:2] for key in errors):
            random, chosen = (errors[data, loss, rule] for rule in RULES)
            cells = [", ".join(f"{by[n]:.3f}" for n in ("16", "24", "30", "40")) for by in (random, chosen)]
            shares = [needed(random, chosen, budget) for budget in BUDGETS]
            cells += ["not reached" if share is None else f"{100 * share:.0f} %" for share in shares]
            table.rows.append([data, loss, *cells])
        yield table
