"""Which subjects there are, and the commands that a quick and a full pass of each consist of.

A subject is a folder beside this file and a line below. Its commands are `[PART] [options]`: PART is a module of the
folder with a `main()`, the subject's `part` where none is named. A `table.py` with `tables(results)` gives the tables
of report, README and docs.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table import Results, Table

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Subject:
    """A folder, the title of its section in the report, and its commands; --data and --peers are added to each."""

    name: str
    title: str
    quick: tuple[str, ...] = ("--quick",)
    full: tuple[str, ...] = ("",)
    part: str = "run"

    def has_part(self, name: str) -> bool:
        """Whether a word names a module of the folder that can be run."""
        file = HERE / self.name / f"{name}.py"
        return file.is_file() and "\ndef main(" in file.read_text(encoding="utf-8")

    def command(self, words: list[str]) -> list[str]:
        """The module that a command's words name, and its arguments."""
        named = bool(words) and self.has_part(words[0])
        return [f"{self.name}.{words[0] if named else self.part}", *words[named:]]

    def tables(self, results: Results) -> Iterable[Table]:
        """The tables of what was measured."""
        if not (HERE / self.name / "table.py").is_file():
            return ()
        return importlib.import_module(f"benchmarks.{self.name}.table").tables(results)


_SUBJECTS = (
    Subject("quantization", "Rotations and product quantization", part="rotation"),
    Subject("codecs", "The best code at every size", full=("", "plain")),
    Subject("ids", "Semantic ids", ("--quick",), ("--seeds 5",)),
    Subject("engines", "A rotation for engines' own codes"),
    Subject(
        "orthogonal",
        "Orthogonal matrices",
        ("run --quick", "tasks --quick --tasks procrustes pca --methods riemannian,POGO,Landing,geoopt"),
        ("run", "tasks"),
    ),
    Subject("hashing", "Hashing", ("--quick --parts table",)),
    Subject("ordinal", "Ordinal embedding", ("--quick",), ("", "wrong", "questions")),
    Subject(
        "two_tower",
        "Two towers",
        ("--quick --sets ml100k", "scaling --quick"),
        ("--sets ml100k", "--sets gowalla --seconds 40", "scaling", "updates"),
    ),
    Subject("end_to_end", "End to end", ("--quick --sets ml100k",)),
    Subject("scale", "Size, and several processes", ("--quick",), ("run", "growth")),
    Subject("defaults", "Tuned numbers"),
    Subject("gpu", "On a GPU", ("--device cpu --small",), ()),
    Subject("papers", "The papers' tables and figures", (), ("",)),  # last: it reads what the others wrote
)
SUBJECTS = {subject.name: subject for subject in _SUBJECTS}
