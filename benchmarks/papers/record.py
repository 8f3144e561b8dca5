"""What is said of a table or figure of a paper: claims with both figures, a verdict from them, one sentence."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from statistics import mean
from typing import Any

from benchmarks.papers.experiments import sources
from benchmarks.table import Results, Table


@dataclass(frozen=True)
class Claim:
    """One thing that a paper shows; `holds` None where the figures stand side by side without a judgement."""

    text: str
    paper: str
    ours: str
    holds: bool | None = None

    def row(self) -> list[str]:
        return [self.text, self.paper, self.ours, {True: "yes", False: "no", None: ""}[self.holds]]


@dataclass(frozen=True)
class Figure:
    """A table or figure of a paper.

    `why` names data, sizes, seeds and departures, `source` the JSON or the command behind our figures, `decides` what
    decides the verdict, with the figure that shows it; it is wanted where a claim fails. `ours`: the setting is ours,
    not the paper's, and the row stands in a table of its own.
    """

    name: str
    claims: tuple[Claim, ...]
    why: str
    source: str
    decides: str = ""
    ours: bool = False

    @property
    def judged(self) -> list[bool]:
        return [claim.holds for claim in self.claims if claim.holds is not None]

    @property
    def verdict(self) -> str:
        if not self.judged:
            return "not measured"
        return "reproduced" if all(self.judged) else "in part" if any(self.judged) else "not reproduced"

    @property
    def score(self) -> str:
        """How many of the judged claims hold."""
        return f"{sum(self.judged)} of {len(self.judged)}" if self.judged else "-"


Paper = tuple[Callable[[Results], Figure], ...]  # its tables and figures


def not_measured(
    name: str, why: str, source: str = "none", beside: tuple[Claim, ...] = (), *, decides: str = "", ours: bool = False
) -> Figure:
    """A figure without a verdict; `beside` are figures of ours that come near and are not judged."""
    return Figure(name, beside, why, source, decides, ours)


def run(source: str) -> str:
    """What to type for a JSON that is not there."""
    return f"Run `python -m benchmarks {sources()[source][0]}`."


Findings = tuple[Iterable[Claim], str, str]  # the claims; data and departures; what decides


def from_json(
    name: str, source: str, *, ours: bool = False
) -> Callable[[Callable[[Any], Findings]], Callable[[Results], Figure]]:
    """Make a figure of what a function finds in one JSON; else say which command writes it."""

    def decorate(find: Callable[[Any], Findings]) -> Callable[[Results], Figure]:
        @wraps(find)
        def make(results: Results) -> Figure:
            found = results.read(source)
            if not found:
                return not_measured(name, run(source), ours=ours)
            claims, why, decides = find(found)
            return Figure(name, tuple(claims), why, source, decides, ours)

        return make

    return decorate


def mean_of(rows: Iterable[dict[str, Any]], key: str) -> float:
    return mean(row[key] for row in rows)


def tables(short: str, title: str, figures: Iterable[Figure]) -> Iterable[Table]:
    """The verdicts of the paper's settings, those of ours, and all claims, for docs and report."""
    figures = list(figures)
    columns = ["figure", "verdict", "claims that hold", "what decides it", "from"]
    for ending, heading, chosen in (
        ("", "verdicts", [f for f in figures if not f.ours]),
        ("-ours", "in our settings", [f for f in figures if f.ours]),
    ):
        table = Table(f"paper-{short}{ending}", f"{title}: {heading}", columns, "")
        table.rows = [[f.name, f"**{f.verdict}**", f.score, f.decides, f.source] for f in chosen]
        if table.rows:
            yield table
    protocol = Table(
        f"paper-{short}-protocol", f"{title}: data, sizes, departures", ["figure", "protocol"], "", listed=True
    )
    protocol.rows = [[f.name, f.why] for f in figures]
    columns = ["figure", "claim", "paper", "ours", "holds"]
    claims = Table(f"paper-{short}-claims", f"{title}: claims", columns, "")
    claims.rows = [[f.name, *claim.row()] for f in figures for claim in f.claims]
    yield from (protocol, claims)
