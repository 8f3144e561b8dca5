"""Vectors from comparisons: the tables."""

from collections.abc import Iterable

import numpy as np
from scipy.stats import t

from benchmarks.ordinal.questions import BUDGETS, needed
from benchmarks.table import Results, Table, number, ratio


def tables(results: Results) -> Iterable[Table]:
    found = results.read("ordinal_speed")
    if found:
        table = Table(
            "ordinal-speed",
            "CPU ms until held-out error 0.15 (final error in brackets), p = 10",
            ["objects, answers", "loss", "default", "cblearn", "default faster"],
            "ordinal_speed",
        )
        for row in found:
            ours, peer = row["nearkin"], row.get("cblearn") or {}
            theirs = peer.get("seconds_to_target")
            theirs = 1e3 * theirs if theirs else None
            shown = f"{number(theirs)} ({peer['error']:.3f})" if "error" in peer else "not installed"
            cells = [f"{number(ours['ms'])} ({ours['error']:.3f})", shown, ratio(theirs, ours["ms"])]
            table.rows.append([f"{row['n']:,}, {row['m']:,}", row["loss"], *cells])
        yield table
    found = results.read("ordinal_wrong")
    if found:
        losses = list(dict.fromkeys(row["loss"] for row in found))
        table = Table("ordinal-wrong", "Error on new answers; means of seeds", ["answers", *losses], "ordinal_wrong")
        table.note = "More than auto, with 95 % intervals over the seeds, paired, in brackets."
        errors = {(row["data"], row["loss"]): np.array(row["errors"]) for row in found}
        for data in dict.fromkeys(row["data"] for row in found):
            cells = []
            for loss in losses:
                more, mean = errors[data, loss] - errors[data, "auto"], f"{errors[data, loss].mean():.3f}"
                cells.append(mean if loss == "auto" else f"{mean} ({more.mean():+.3f} ± {_half(more):.3f})")
            table.rows.append([data, *cells])
        yield table
    found = results.read("ordinal_questions")
    if found:
        title = f"Error after 16, 24, 30 and 40 answers an object, a fifth of them wrong; {found[0]['seeds']} seeds"
        columns = ["data", "loss", "rule", "error", "mean less than random's", "answers for random's error at 30, %"]
        table = Table("ordinal-questions", title, [*columns, "at 40, %"], "ordinal_questions")
        table.note = "Means from 10 answers on, with 95 % intervals over the seeds, paired."
        random = {(row["data"], row["loss"]): row for row in found if row["rule"] == "random"}
        for row in found:
            beside = random[row["data"], row["loss"]]
            less = np.subtract(beside["means"], row["means"])
            shares = [None if row is beside else needed(beside["error"], row["error"], budget) for budget in BUDGETS]
            cells = [", ".join(f"{row['error'][n]:.3f}" for n in ("16", "24", "30", "40"))]
            cells += ["-" if row is beside else f"{less.mean():.3f} ± {_half(less):.3f}"]
            cells += ["-" if share is None else f"{100 * share:.0f}" for share in shares]
            table.rows.append([row["data"], row["loss"], row["rule"], *cells])
        yield table
    found = results.read("ordinal_rankings")
    if found:
        title = f"Answers for the error of 40 random triplets an object, in % of these; {found[0]['seeds']} seeds"
        columns = ["data", "error", "chosen triplets", "random rankings", "chosen rankings"]
        table = Table("ordinal-rankings", title, columns, "ordinal_rankings")
        table.note = (
            "With 95 % intervals over the seeds; a ranking of four is one answer, its comparisons are in brackets."
        )
        for row in found:
            error, *shares = np.array(row["shares"], float).T
            cells = [f"{100 * share.mean():.0f} ± {100 * _half(share):.0f}" for share in shares]
            cells[1:] = [
                f"{cell} ({600 * share.mean():.0f})" for cell, share in zip(cells[1:], shares[1:], strict=True)
            ]
            cells = ["not reached" if "nan" in cell else cell for cell in cells]
            table.rows.append([row["data"], f"{error.mean():.3f}", *cells])
        yield table


def _half(values: np.ndarray) -> float:
    """Half the 95 % interval of a mean over seeds."""
    n = len(values)
    return float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
