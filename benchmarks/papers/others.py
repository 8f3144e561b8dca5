"""What the papers' pages quote from other benchmarks, and the commands that measure it."""

import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.__main__ import start
from benchmarks.options import RESULTS
from benchmarks.subjects import SUBJECTS


@dataclass(frozen=True)
class Other:
    """A command of a subject, what makes it short, and the JSON that it writes."""

    command: str
    small: str
    source: str

    def finished(self) -> bool:
        return (RESULTS / f"{self.source}.json").exists()


OTHERS = (
    Other("quantization rotation", "--quick", "rotation"),
    Other("orthogonal flops", "", "orthogonal_flops"),
    Other("two_tower scaling", "--quick", "two_tower_scaling"),
    Other("two_tower --sets ml100k", "--quick", "two_tower_solvers"),
    Other("two_tower --sets gowalla --seconds 40", "--quick --seconds 1", "two_tower_solvers"),
)


def run_others(data: Path, *, small: bool, again: bool, until: float) -> bool:
    """Run each command in a process of its own, unless its results were there; whether all of them went through."""
    through, wanted = True, [other for other in OTHERS if small or again or not other.finished()]
    for other in wanted:
        if time.monotonic() > until:
            return False
        subject, *words = f"{other.command} {other.small if small else ''}".split()
        print(f"== {subject} {' '.join(words)}", flush=True)
        through &= start([*SUBJECTS[subject].command(words), "--data", str(data)]) == 0
    return through
