"""Test files of other projects, run on nearkin through one adapter each.

`make kits` brings the packages and their test files into .kits and runs them; otherwise these tests skip. No code of
the other projects is kept here. An adapter takes a peer's tests as its own, puts nearkin behind the names that they
call, and gives in `OTHERS` the reason of each test that does not apply. `make kits` fails if its results
differ from the table in docs/reliability.md.
"""

import importlib.metadata
import os
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "reliability.md"
FOUND: dict[str, Counter[str]] = defaultdict(Counter)

if "NEARKIN_KITS" in os.environ:
    sys.path.append(str(Path(os.environ["NEARKIN_KITS"]) / "packages"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sklearn: of cblearn")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, and count, what does not apply."""
    kept = []
    for item in items:
        others = getattr(getattr(item, "module", None), "OTHERS", None)
        if others is None or item.path.parent != Path(__file__).parent:
            kept.append(item)
            continue
        name = item.nodeid.partition("::")[2]
        reason = next((reason for pattern, reason in others.items() if re.search(pattern, name)), None)
        if reason is None:
            item.add_marker(pytest.mark.filterwarnings("default"))
            kept.append(item)
        else:
            FOUND[_kit(item.nodeid)][reason] += 1
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "tests/peers/" in report.nodeid and not (report.passed and report.when != "call"):
        said = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else report.outcome
        if report.passed and dict(report.user_properties).get("calls") == []:
            said = "pass without nearkin"
        FOUND[_kit(report.nodeid)][said.removeprefix("Skipped: ")] += 1


def _kit(nodeid: str) -> str:
    return Path(nodeid.partition("::")[0]).stem.removeprefix("test_")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table's rows."""
    for row in _rows():
        terminalreporter.write_line(f"{'  ' if row in DOCS.read_text() else '! '}{row}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if FOUND and any(row not in DOCS.read_text() for row in _rows()):
        session.exitstatus = 1


def _rows() -> list[str]:
    rows = []
    for kit, found in FOUND.items():
        if "passed" in found:
            reasons = "; ".join(f"{count} {reason}" for reason, count in found.most_common() if reason != "passed")
            version = importlib.metadata.version(kit)
            rows.append(f"| {kit} | {version} | {sum(found.values())} | {found['passed']} | {reasons} |")
    return rows
