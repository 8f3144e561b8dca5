"""Whether `nearkin sweep` keeps its promise on queries that it did not see, and how near it comes to the best size.

python -m benchmarks sweep [--sets sift,mnist,sentences] [--draws 40] [--data DIR] [--quick]

For each draw 1,000 queries are seen: codes are tried as `nearkin sweep` tries them, without a limit of time. The others
judge the answer: is the target met, and how many bytes has it for those of the shortest code that meets the target on
the very queries that judge? That one is looked for among all that were trained: every size near the answers is. Every
code is trained once; its recall of each query is kept in benchmarks/.cache, where a run that was broken off goes on.
Writes results/sweep_SET.json.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import limit_threads, save
from benchmarks.options import parser
from benchmarks.sweep.problems import DRAWS, NEIGHBOURS, SEEN, SETS, TARGET, load
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.pipeline.methods import SCALARS, sizes_tried
from nearkin.pipeline.sweep import METHODS, Bench, Comparison, Search, Searches, choose

CACHE = Path(__file__).parents[1] / ".cache"
DEPTHS = {False: (1,), True: (2, 4, 8, 16)}  # oversampling by which a code may meet the target
SHORT = 0.02  # so far below the target on all queries, a code meets it on no draw's, and shorter ones do not either
LEARNED = [name for name in METHODS if name not in SCALARS]


class Remembering:
    """A bench over all queries that trains every code once; `seen` are the queries that a sweep is shown."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._bench, self._folder, self._trials = bench, folder, {}
        self.seen = np.arange(len(bench.Q))
        folder.mkdir(parents=True, exist_ok=True)

    def cost(self, method: str, n_bytes: int) -> float:
        return 0.0

    def measure(self, method: str, n_bytes: int, target: float) -> Searches:
        del target  # all by float32
        whole = self.whole(method, n_bytes)
        return {o: replace(search, recall=search.recall[self.seen]) for o, search in whole.items()}

    def whole(self, method: str, n_bytes: int) -> Searches:
        """The trial judged by all queries."""
        if (method, n_bytes) not in self._trials:
            self._trials[method, n_bytes] = self._read(method, n_bytes)
        return self._trials[method, n_bytes]

    def _read(self, method: str, n_bytes: int) -> Searches:
        file = self._folder / f"{method}_{n_bytes}.npz"
        if not file.exists():
            start = time.process_time()
            made = self._bench.measure(method, n_bytes)
            shares = {f"r{o}": search.recall for o, search in made.items()}
            rates = [(o, search.rate) for o, search in made.items()]
            np.savez(file, rates=rates, seconds=time.process_time() - start, **shares)
            print(f"{method} {n_bytes}: {made[1].mean:.4f}", flush=True)
        with np.load(file) as data:
            recall = {int(name[1:]): data[name] for name in data.files if name[0] == "r" and name != "rates"}
            rates = {int(o): float(rate) for o, rate in data["rates"]}
            seconds = float(data["seconds"])
            return {o: Search(method, n_bytes, o, recall[o], rates[o], seconds) for o in recall}

    def trained(self) -> list[Searches]:
        """All codes that were trained."""
        return list(self._trials.values())


def run(bench: Remembering, d: int, q: int, draws: int) -> list[dict[str, Any]]:
    """A record for each draw and question."""
    chosen = []
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(q)
        bench.seen, unseen = order[:SEEN], order[SEEN:]
        made = Comparison(bench, TARGET, d, np.inf)
        made.run(METHODS)
        for rescored in (False, True):
            found = choose(made.trials, TARGET, rescored=rescored)
            chosen.append((draw, rescored, found, unseen, len(made.trials)))
    for rescored in (False, True):
        _train_around(bench, d, [found for _, which, found, *_ in chosen if which == rescored], rescored)
    return [_judged(bench, *row) for row in chosen]


def _train_around(bench: Remembering, d: int, found: list[Search | None], rescored: bool) -> None:
    """The sizes of every learned method from what was chosen down to where the method falls short of the target."""
    sizes = [choice.n_bytes for choice in found if choice is not None]
    for method in LEARNED if sizes else ():
        for size in reversed(sizes_tried(d, norms=False).get(method, [])):
            if min(sizes) / 1.25 <= size <= max(sizes):
                trial = bench.whole(method, size)
                if max(trial[o].mean for o in DEPTHS[rescored]) < TARGET - SHORT:
                    break


def _judged(
    bench: Remembering, draw: int, rescored: bool, found: Search | None, unseen: np.ndarray, trials: int
) -> dict[str, Any]:
    """What was chosen beside the shortest code that meets the target on the unseen queries."""
    enough = [t for t in bench.trained() if max(t[o].recall[unseen].mean() for o in DEPTHS[rescored]) >= TARGET]
    best = min((trial[1] for trial in enough), key=lambda code: code.n_bytes)
    record: dict[str, Any] = {"draw": draw, "rescored": rescored, "trials": trials}
    record |= {"best_method": best.method, "best_bytes": best.n_bytes, "met": False}
    if found is not None:
        recall = float(bench.whole(found.method, found.n_bytes)[found.oversample].recall[unseen].mean())
        record |= {"method": found.method, "bytes": found.n_bytes, "oversample": found.oversample}
        record |= {"recall": recall, "met": recall >= TARGET, "ratio": found.n_bytes / best.n_bytes}
    return record


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", default=",".join(SETS))
    options.add_argument("--draws", type=int, default=DRAWS)
    args = options.parse_args()
    limit_threads(args.threads)
    for name in args.sets.split(","):
        X, Q = load(name, args.data, args.quick)
        truth = ExactNeighbours.of(X, Q, NEIGHBOURS)
        folder = CACHE / f"sweep_{name}{'_quick' if args.quick else ''}"
        bench = Remembering(Bench(X, X, Q, truth, "l2"), folder)
        rows = run(bench, X.shape[1], len(Q), args.draws)
        save(f"sweep_{name}", rows, set=name, rows=len(X), queries=len(Q), seen=SEEN, target=TARGET, draws=args.draws)
