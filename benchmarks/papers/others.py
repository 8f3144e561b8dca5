"""What the papers' pages quote from other benchmarks, and the commands that measure it."""

import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.__main__ import start
from benchmarks.options import RESULTS
from benchmarks.stored import read_json, write_json
from benchmarks.subjects import SUBJECTS


@dataclass(frozen=True)
class Other:
    """A command of a subject, what makes it short, and the JSON, or the part of one, that it writes."""

    command: str
    small: str
    source: str
    part: str = ""

    def results(self) -> dict:
        file = RESULTS / f"{self.source}.json"
        return read_json(file) if file.exists() else {}

    def finished(self) -> bool:
        found = self.results()
        return bool(found.get("results", found).get(self.part) if self.part else found)

    def forget(self) -> None:
        """Take its part out of the JSON: some subjects keep what they find there."""
        found = self.results()
        if self.part and self.finished():
            del found.get("results", found)[self.part]
            write_json(RESULTS / f"{self.source}.json", found)


OTHERS = (
    Other("quantization rotation", "--quick", "rotation"),
    Other("orthogonal flops", "", "orthogonal_flops"),
    Other("quantization --parts convergence", "--quick", "quantization_convergence"),
    Other("end_to_end --sets ml100k --parts rotations", "--quick", "end_to_end_ml100k", "rotations"),
    Other("hashing --part scale", "--quick --sets raw --train-rows 1000", "hashing", "scale"),
    Other("hashing --part table", "--quick --sets raw --train-rows 1000", "hashing", "table"),
    Other("ordinal --table1", "--quick", "ordinal_table1"),
    Other("ordinal --music", "--quick", "ordinal_music"),
    Other("two_tower --scaling", "--quick", "two_tower", "scaling"),
    Other("two_tower --sets ml100k", "--quick", "two_tower", "ml100k"),
    Other("two_tower --sets gowalla --seconds 40", "--quick --seconds 1", "two_tower", "gowalla"),
)


def run_others(data: Path, *, small: bool, again: bool, until: float) -> bool:
    """Run each command in a process of its own, unless its results are there; whether all of them went through."""
    through = True
    for other in OTHERS:
        if small or again:
            other.forget()
        elif other.finished():
            continue
        if time.monotonic() > until:
            return False
        subject, *words = f"{other.command} {other.small if small else ''}".split()
        print(f"== {subject} {' '.join(words)}", flush=True)
        through &= start([*SUBJECTS[subject].command(words), "--data", str(data)]) == 0
    return through
