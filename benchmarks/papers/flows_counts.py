"""Flows, Table 1 as counted there: MNIST's hidden 100 x 100 layer alone, and "ortinit" with its projections.

The paper's figures are formulas: exact is 2 d^3, s = 2 is 17 d^2 (8.5 d^2 on MNIST), s = d / log d is 2 d^2 s, ortinit
is a projection every p steps and d^2 for the step, 2 d^3 / p + d^2. Ours are counted while a step runs
(benchmarks.orthogonal.flops), the projection as a Householder QR with its factor formed, 8/3 d^3.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.jobs import Job, Row
from benchmarks.orthogonal.flops import counted

PERIODS = (20, 10, 8, 5, 4)
COUNTED = {"exact": "exp", "s = 2": "flow s=2", "s = r*": "flow s=d/log d"}


def ortinit(d: int, p: int) -> float:
    """Operations of one free step and a p-th of a projection by QR."""
    return (8 * d**3 / 3) / p + 2 * d**2


def printed(d: int, p: int) -> float:
    """The paper's row of Table 1, in operations."""
    return 2 * d**3 / p + d**2


FULL = SMALL = None


def jobs(data: Path, size: None) -> Iterator[Job]:
    """Flows, Table 1: operations a step."""
    del data, size
    yield Job({"table": 1}, measured)


def measured() -> Row:
    """Of MNIST's hidden layer, of "ortinit" as printed and counted, of the flow."""
    hidden = {word: counted(name, 100, 100) for word, name in COUNTED.items()}
    rows = {str(d): {str(p): [printed(d, p), ortinit(d, p)] for p in PERIODS} for d in (200, 400)}
    flow = {str(d): counted("flow s=2", d, d) for d in (200, 400)}
    return {"MNIST hidden": hidden, "ortinit": rows, "flow s=2": flow}
