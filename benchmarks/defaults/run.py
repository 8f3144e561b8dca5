"""What every tuned number is worth: each field of every `Defaults` moved, and what a default fit then reaches.

    python -m benchmarks defaults                                          all of them, an hour or two
    python -m benchmarks defaults quantization.additive                    those of one module
    python -m benchmarks defaults quantization.additive.memory=0,.5,.9     one of them, at these values

Without values a number is halved and doubled, a limit of rows halved, and some have their own values in `OTHERS`. A row
is one of two problems on different data: the figure in points, and the CPU seconds of a fit, at the default and at the
other values (one thread, one to five seeds). Differences below about .5 are noise.
"""

import ast
import importlib
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import nearkin
from benchmarks.defaults.fields import HALVED, OTHERS, problems_of
from benchmarks.defaults.problems import PROBLEMS
from benchmarks.harness import cpu_seconds
from benchmarks.jobs import Job, Row, command

SRC = Path(nearkin.__file__).parent


class Field(NamedTuple):
    """A tuned number by its module below `nearkin` and its name."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def holder(self) -> Any:
        """The `Defaults` that a fit reads."""
        return importlib.import_module(f"nearkin.{self.module}").DEFAULTS

    @property
    def value(self) -> Any:
        return getattr(self.holder, self.name)

    @contextmanager
    def moved(self, value: Any) -> Iterator[None]:
        """The value in place of the default."""
        before, holder = self.value, self.holder
        object.__setattr__(holder, self.name, value)
        try:
            yield
        finally:
            object.__setattr__(holder, self.name, before)


def all_fields() -> list[Field]:
    """The fields of every `Defaults`, without importing anything."""
    found = []
    for file in sorted(SRC.rglob("*.py")):
        module = ".".join(file.relative_to(SRC).with_suffix("").parts)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name == "Defaults":
                names = (ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign))
                found += [Field(module, name) for name in names]
    return found


def others(field: Field) -> tuple[Any, ...]:
    """Values to compare with the present one."""
    if str(field) in OTHERS:
        return OTHERS[str(field)]
    value = field.value
    if isinstance(value, float):
        return value / 2, value * 2
    if not isinstance(value, int):
        raise ValueError(f"{field} is {value!r}; a value that is no number needs its alternatives in OTHERS")
    return (max(1, value // 2), value * 2)[: 1 if HALVED.search(field.name) else 2]


def wanted(words: list[str]) -> Iterator[tuple[Field, tuple[Any, ...]]]:
    """The fields that words name, "MODULE", "MODULE.FIELD" or "MODULE.FIELD=VALUE,VALUE", and the values to try."""
    fields = all_fields()
    for word in words or [""]:
        name, _, values = word.partition("=")
        named = [field for field in fields if not name or name in (field.module, str(field))]
        if not named:
            raise SystemExit(f"no module or field {name!r} has tuned numbers; there are {', '.join(map(str, fields))}")
        for field in named:
            yield field, ast.literal_eval(f"({values},)") if values else others(field)


def figure(problem: str, data: Path, seeds: int) -> tuple[float, float]:
    """The mean over seeds, and CPU seconds, by the values that stand in `Defaults` now."""
    runs = [cpu_seconds(lambda seed=seed: PROBLEMS[problem].run(data, seed)) for seed in range(seeds)]
    return sum(value for _, value in runs) / seeds, min(seconds for seconds, _ in runs)


at_defaults = cache(figure)


def measured(field: Field, values: tuple[Any, ...], problem: str, data: Path, seeds: int) -> Row:
    """The figure at the default and at the other values."""
    points, seconds = at_defaults(problem, data, seeds)
    row: Row = {"value": repr(field.value), "unit": PROBLEMS[problem].unit, "seeds": seeds, "figure": points}
    row |= {"seconds": seconds, "others": {}}
    for value in values:
        if value != field.value:
            with field.moved(value):
                row["others"][repr(value)] = list(figure(problem, data, seeds))
    return row


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for field, values in wanted(given.fields or (["quantization.additive.memory=0"] if given.quick else [])):
        for problem in problems_of(str(field)):
            seeds = 1 if given.quick else given.seeds or PROBLEMS[problem].seeds
            work = partial(measured, field, values, problem, given.data, seeds)
            yield "defaults", Job({"field": str(field), "problem": problem}, work)


def main() -> None:
    command(__doc__, jobs, {}, "fields", seeds=0)
