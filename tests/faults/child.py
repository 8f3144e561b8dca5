"""Cases run in child processes under limits: 10 s and 2 GB each. A death or a hang is a fault like any other.

The 10 s are of the child's own time on a core; a case that sleeps ends after 100 s by the clock.
"""

import importlib
import os
import resource
import select
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults.table import Row
from tests.processes import Program

SECONDS, BYTES = 10, 2 * 2**30
PATIENCE = 10  # times as long by the clock: a case that waits for a core is no hang
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # in memory, where there is such a place
CLEAN = (ValueError, FileNotFoundError, PermissionError)  # these types exactly, not what inherits from them

Case = Callable[[int, int, Path], str]  # case(number, seed, folder): "same" or "other"; a clean error; Fault


class Fault(Exception):
    """A broken promise."""


def refused(call: Callable[[], object], name: str = "a call") -> None:
    """The call must be refused, with a reason."""
    try:
        call()
    except (ValueError, TypeError) as error:
        if not str(error):
            raise Fault(f"{name} is refused without a reason") from error
        return
    raise Fault(f"{name} took what it must refuse")


def run_cases(module: str, first: int, stop: int, seed: int) -> Row:
    """Let a child do `module.case(number, seed, folder)` for the numbers from `first` to before `stop`, and another
    after its death; "module:other" does `module.other(number, seed, folder)`."""
    row = Row(module, stop - first)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        while first < stop:
            for number, outcome, text in _cases((module, str(seed), folder), first, stop):
                first = number + 1
                row.outcomes[outcome] += 1
                if outcome == "fault":
                    row.faults.append(f"case {number} of seed {seed}: {text}")
    return row


def _cases(words: tuple[str, ...], first: int, stop: int) -> Iterator[tuple[int, str, str]]:
    """Number, outcome and text of each case, until the last one or the child's end, which is a fault too."""
    child = _Child(*words)
    try:
        if child.line(120) != "ready":
            raise RuntimeError(f"python -m tests.faults.child {words[0]} does not get ready")
        child.tell(f"{first} {stop}\n")
        for number in range(first, stop):
            line = child.line(SECONDS)
            if not line:
                yield number, "fault", "hangs" if line is None else f"ends the process ({child.process.wait()})"
                return
            outcome, text = line.split("\t", 1)
            yield number, outcome, text
    finally:
        child.process.close()


class _Child:
    """The process of `main`, and the lines that it writes."""

    def __init__(self, *words: str) -> None:
        self.process = Program("tests.faults.child", *words)
        self._lines: deque[str] = deque()
        self._rest = b""

    def tell(self, text: str) -> None:
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def line(self, seconds: float) -> str | None:
        """The next line; "" when the child ended, None when it has used `seconds` of its time without one."""
        start, used = time.monotonic(), cpu_seconds(self.process.pid)
        while not self._lines:
            if select.select([self.process.stdout], [], [], 0.5)[0]:
                if not (data := os.read(self.process.stdout.fileno(), 2**16)):
                    return ""
                *lines, self._rest = (self._rest + data).split(b"\n")
                self._lines.extend(line.decode() for line in lines)
            elif cpu_seconds(self.process.pid) - used > seconds or time.monotonic() - start > PATIENCE * seconds:
                return None
        return self._lines.popleft()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(module: str, seed: str, folder: str) -> None:
    """For each line "first stop" on stdin write one line a case: number, outcome, text."""
    os.setsid()  # Ctrl-C is the parent's
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    module, _, name = module.partition(":")
    loaded = importlib.import_module(module)
    case: Case = getattr(loaded, name or "case")
    if hasattr(loaded, "prepare"):  # what takes its time once is no hang
        loaded.prepare(Path(folder))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, size + BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        for number in range(*map(int, line.split())):
            outcome, text = _outcome(case, number, int(seed), Path(folder))
            sys.stdout.write(f"{outcome}\t{text[:300]!r}\n")
            sys.stdout.flush()


def _outcome(case: Case, number: int, seed: int, folder: Path) -> tuple[str, str]:
    try:
        return case(number, seed, folder), ""
    except Exception as error:
        text = str(error)
        if type(error) in CLEAN and text and "Traceback" not in text:
            return "error", text
        return "fault", f"{type(error).__name__}: {text}"


if __name__ == "__main__":
    main(*sys.argv[1:])
