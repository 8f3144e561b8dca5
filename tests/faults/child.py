"""Cases run in a child process under limits: 10 s and 2 GB each. A death or a hang is a fault like any other."""

import importlib
import os
import resource
import select
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.faults.table import Row

SECONDS, BYTES = 10, 2 * 2**30
ROOT = Path(__file__).parents[2]
CLEAN = (ValueError, FileNotFoundError, PermissionError)  # these types exactly, not what inherits from them

Case = Callable[[int, int, Path], str]  # case(number, seed, folder): "same" or "other"; a clean error; Fault


class Fault(Exception):
    """A broken promise."""


def run_cases(name: str, module: str, count: int, seed: int) -> Row:
    """Run `module.case(number, seed, folder)` for `count` numbers in children, one after another."""
    row, start = Row(name), 0
    with tempfile.TemporaryDirectory() as folder:
        while start < count:
            start = _one_child(row, module, start, count, seed, folder)
    row.inputs = count
    return row


def _one_child(row: Row, module: str, start: int, count: int, seed: int, folder: str) -> int:
    """Go on from `start` until the end, or until a case hangs or kills the child; return the next number."""
    command = [sys.executable, "-m", "tests.faults.child", module, str(start), str(count), str(seed), folder]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    child = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert child.stdout is not None
    done, limit = start, 60  # the first line comes after the imports
    while True:
        ready = select.select([child.stdout], [], [], limit)[0]
        line = child.stdout.readline() if ready else ""
        if not line:
            break
        limit = SECONDS
        if line == "ready\n":
            continue
        number, outcome, text = line.rstrip("\n").split("\t", 2)
        done = int(number) + 1
        row.outcomes[outcome] += 1
        if outcome == "fault":
            row.faults.append(f"case {number} of seed {seed}: {text}")
    child.kill()
    status = child.wait()
    child.stdout.close()
    if done < count:
        how = "hangs" if ready == [] else f"ends the process ({status})"
        row.faults.append(f"case {done} of seed {seed}: {how}")
        return done + 1
    return done


def main(module: str, start: str, stop: str, seed: str, folder: str) -> None:
    """Write one line a case: number, outcome, text."""
    loaded = importlib.import_module(module)
    case: Case = loaded.case
    if hasattr(loaded, "prepare"):  # what takes its time once is no hang
        loaded.prepare(Path(folder))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, size + BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for number in range(int(start), int(stop)):
        outcome, text = _outcome(case, number, int(seed), Path(folder))
        sys.stdout.write(f"{number}\t{outcome}\t{text[:300]!r}\n")
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
