"""Ordinal embedding beside cblearn, and the paper's experiments.

    python benchmarks/ordinal.py --quick
    python benchmarks/ordinal.py --peer .venv-peers/bin/python          time to 15 % error beside cblearn, kernels
    python benchmarks/ordinal.py --table1                               SVRG-SBB Table I and Figure 2
    python benchmarks/ordinal.py --music --retrieval --data DIR         sections 5.3 and 5.4
    python benchmarks/ordinal.py --scale                                10^7 answers over 10^5 objects

Results are JSON in benchmarks/results/ordinal_*.json; figures are drawn from them. Times are processor time of one
thread. cblearn pins NumPy 1.26 and so runs in an environment of its own, whose Python --peer names: python -m venv
.venv-peers && .venv-peers/bin/pip install cblearn.
"""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from benchmarks.ordinal import figures, kernel, music, retrieval, scale, speed, table1  # noqa: E402
from benchmarks.ordinal.problems import RESULTS, write  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, results not written")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--peer", type=Path, help="the Python of an environment with cblearn")
    for part in ("speed", "kernel", "table1", "music", "retrieval", "scale", "figures"):
        parser.add_argument(f"--{part}", action="store_true")
    options = parser.parse_args()
    keep = not options.quick or "NEARKIN_RESULTS" in os.environ  # a quick pass by hand leaves the full one's figures
    parts = {
        "kernel": lambda: kernel.measure(options.quick),
        "speed": lambda: speed.measure(
            options.quick, options.peer, partial(write, "speed") if keep else lambda record: None
        ),
        "table1": lambda: table1.measure(options.quick, options.peer),
        "music": lambda: music.measure(options.quick, options.data),
        "retrieval": lambda: retrieval.measure(options.quick, options.data),
        "scale": lambda: scale.measure(options.quick),
    }
    chosen = [name for name in parts if getattr(options, name)] or ([] if options.figures else ["kernel", "speed"])
    for name in chosen:
        print(f"\n{name}")
        record = parts[name]()
        if keep:
            write(name, record)
    if not options.quick:
        figures.draw(RESULTS)


if __name__ == "__main__":
    main()
