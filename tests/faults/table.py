"""The row that a suite of faults reports."""

from collections import Counter
from dataclasses import dataclass, field

HEADER = ("suite", "inputs", "clean error", "same answer", "other answer", "faults")


@dataclass
class Row:
    """What became of `inputs` damaged inputs; `faults` (what broke the promise) must be empty."""

    suite: str
    inputs: int = 0
    outcomes: Counter = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, part: "Row") -> None:
        """Count another row's inputs too."""
        self.inputs += part.inputs
        self.outcomes += part.outcomes
        self.faults += part.faults

    def cells(self) -> tuple[str, ...]:
        numbers = (self.inputs, *(self.outcomes[name] for name in ("error", "same", "other")), len(self.faults))
        return (self.suite, *(f"{number:,}" for number in numbers))


def markdown(rows: list[Row]) -> str:
    lines = [HEADER, ("---", *["---:"] * (len(HEADER) - 1)), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
