"""Few cases that still put every two settings together, since few faults need three at once; many cases in one test."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import wraps
from itertools import combinations, product
from typing import Any

import pytest


def covering(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The full product of the first two axes; each further axis takes the value that met the row's first, and then
    its others, least.

    So every pair of values of two axes occurs, as far as the number of rows allows, and each value about equally often.
    """
    met: Counter[tuple[tuple[int, int], ...]] = Counter()  # pairs of (axis, number of the value)
    rows = []
    for row in product(*(range(len(axis)) for axis in axes[:2])):
        for axis, values in enumerate(axes[2:], 2):
            counts = [[met[(i, part), (axis, new)] for i, part in enumerate(row)] for new in range(len(values))]
            row += (min(range(len(values)), key=lambda new: (counts[new][0], sum(counts[new]))),)
        met.update(combinations(enumerate(row), 2))
        rows.append(tuple(axis[number] for axis, number in zip(axes, row, strict=True)))
    return rows


def each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, in one test: for cases of milliseconds, whose set-up one by one costs more.

    Each case is a subtest of its own: all that fail are reported, by name. Each has its own folder `tmp_path`, its
    `monkeypatch` and `rng`.
    """
    listed, rows = [names] if isinstance(names, str) else list(names), list(cases)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        takes = inspect.signature(test).parameters  # a test of two axes: the outer one hands the fixture on

        @wraps(test)
        def run(subtests: pytest.Subtests, **given: Any) -> None:
            if "subtests" in takes:
                given["subtests"] = subtests
            for number, row in enumerate(rows):
                case = dict(zip(listed, row if len(listed) > 1 else [row], strict=True))
                with _own(given, number) as own, subtests.test(f"case {number}: {case!r:.200}"):
                    test(**own, **case)

        left = [one for name, one in takes.items() if name not in {*listed, "subtests"}]
        reported = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        run.__signature__ = inspect.Signature([*left, reported])  # pyright: ignore[reportAttributeAccessIssue]
        return run

    return decorate


@contextmanager
def _own(given: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """What pytest would make for each case."""
    own = dict(given)
    if "tmp_path" in own:
        own["tmp_path"] = own["tmp_path"] / f"case{number}"
        own["tmp_path"].mkdir()
    if "rng" in own:
        own["rng"] = deepcopy(own["rng"])
    if "monkeypatch" not in own:
        yield own
        return
    with own["monkeypatch"].context() as own["monkeypatch"]:
        yield own
