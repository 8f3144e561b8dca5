"""Tables of `questions`: chosen questions, choices as one event, raters' weights, intervals."""

from collections.abc import Iterable
from typing import Any

from benchmarks.table import Results, Table


def tables(results: Results) -> Iterable[Table]:
    found = results.read("ordinal_questions")
    if found:
        yield active(found["active"])
        yield choices(found["choices"])
        yield raters(found["raters"])
        yield intervals(found["intervals"])


def active(rows: list[dict[str, Any]]) -> Table:
    """For each data set and loss: the errors of random and chosen questions, and the share of answers needed."""
    table = Table(
        "ordinal-questions",
        f"error after 16, 24, 30 and 40 answers an object, a fifth of them wrong (mean of {rows[0]['seeds']} seeds)",
        ["data", "loss", "random", "chosen", "answers for random's error at 30", "at 40"],
        "ordinal_questions",
    )
    by_rule = {(row["data"], row["loss"], row["rule"]): row for row in rows}
    for data, loss, rule in by_rule:
        if rule == "random":
            chosen = by_rule[data, loss, "information-gain"]
            cells = [_errors(by_rule[data, loss, rule]), _errors(chosen)]
            needed = [_percent(share) for share in chosen["needed"].values()]
            table.rows.append([data, loss, *cells, *needed])
    return table


def choices(rows: list[dict[str, Any]]) -> Table:
    names = list(rows[0]["error"])
    table = Table(
        "ordinal-choices",
        f"error after 15 odd-one-out answers an object (mean of {rows[0]['seeds']} seeds)",
        ["data", "answers", "loss", *names],
        "ordinal_questions",
    )
    for row in rows:
        table.rows.append([row["data"], row["answerer"], row["loss"], *(f"{row['error'][name]:.3f}" for name in names)])
    return table


def raters(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "ordinal-raters",
        f"error with eight raters, two of whom toss coins (mean of {rows[0]['seeds']} seeds)",
        ["data", "loss", "answers an object", "equal", "estimated", "without the two", "two lowest found"],
        "ordinal_questions",
    )
    for row in rows:
        errors = [f"{row['error'][name]:.3f}" for name in ("equal", "estimated", "known")]
        table.rows.append([row["data"], row["loss"], row["answers"], *errors, _percent(row["error"]["found"])])
    return table


def intervals(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "ordinal-intervals",
        f"90 % intervals that held the error on 20,000 later answers ({rows[0]['seeds']} seeds)",
        ["data", "held", "mean width"],
        "ordinal_questions",
    )
    for row in rows:
        table.rows.append([row["data"], _percent(row["error"]["held"]), f"{row['error']['width']:.3f}"])
    return table


def _errors(row: dict[str, Any]) -> str:
    return ", ".join(f"{row['error'][count]:.3f}" for count in ("16", "24", "30", "40"))


def _percent(share: float | None) -> str:
    return "not reached" if share is None else f"{100 * share:.0f} %"
