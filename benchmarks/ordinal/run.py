"""Ordinal embedding beside cblearn, and the paper's experiments.

    python -m benchmarks ordinal --speed --kernel        time to 15 % error beside cblearn, kernels
    python -m benchmarks ordinal --table1                SVRG-SBB Table I and Figure 2
    python -m benchmarks ordinal --music --retrieval     sections 5.3 and 5.4
    python -m benchmarks ordinal --questions             active questions, one-event choices, raters, intervals
    python -m benchmarks ordinal --scale                 10^7 answers over 10^5 objects

Results are JSON in benchmarks/results/ordinal_*.json. Times are processor time of one
thread. cblearn pins NumPy 1.26 and so runs in the peers' environment.
"""

import os
from functools import partial

from benchmarks.harness import limit_threads
from benchmarks.options import parser, peer_python
from benchmarks.ordinal import kernel, music, questions, retrieval, scale, speed, table1
from benchmarks.ordinal.problems import write


def main() -> None:
    asked = parser(__doc__)
    for part in ("speed", "kernel", "table1", "music", "retrieval", "questions", "scale"):
        asked.add_argument(f"--{part}", action="store_true")
    options = asked.parse_args()
    limit_threads(options.threads)
    peer = peer_python(options.peers)
    keep = not options.quick or "NEARKIN_RESULTS" in os.environ  # a quick pass by hand leaves the full one's figures
    parts = {
        "kernel": lambda: kernel.measure(options.quick),
        "speed": lambda: speed.measure(options.quick, peer, partial(write, "speed") if keep else lambda record: None),
        "table1": lambda: table1.measure(options.quick, peer),
        "music": lambda: music.measure(options.quick, options.data),
        "retrieval": lambda: retrieval.measure(options.quick, options.data),
        "questions": lambda: questions.measure(options.quick, options.data),
        "scale": lambda: scale.measure(options.quick),
    }
    chosen = [name for name in parts if getattr(options, name)] or ["kernel", "speed"]
    for name in chosen:
        print(f"\n{name}")
        record = parts[name]()
        if keep:
            write(name, record)


if __name__ == "__main__":
    main()
