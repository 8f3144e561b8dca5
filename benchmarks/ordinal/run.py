"""Ordinal embedding beside cblearn: time until 15 % held-out error, and the final error, on the same answers.

    python -m benchmarks ordinal                time to 15 % error beside cblearn
    python -m benchmarks ordinal wrong          losses where a tenth of the answers is wrong, beside those of other sets
    python -m benchmarks ordinal questions      chosen questions beside random ones

CPU time of one thread. cblearn pins NumPy 1.26 and so runs in the peers' environment.
"""

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import nearkin as nk
from benchmarks.harness import by_peer
from benchmarks.jobs import Job, Row, command
from benchmarks.options import peer_python
from benchmarks.ordinal.problems import TARGET, seconds, synthetic
from nearkin.metrics import triplet_error
from nearkin.records import Comparisons

LOSSES = ("ste", "gnmds", "t-ste", "soe")
SIZES = ((100, 10_000), (1000, 100_000), (10_000, 1_000_000))
LIMIT = 40.0  # seconds of cblearn


def measured(n: int, m: int, loss: str, peer: Path | None) -> Row:
    """Ours by two solvers and by default, and cblearn's."""
    train, test = synthetic(n, m, seed=0)
    ours, theirs = {solver: time_to_target(train, test, loss, solver) for solver in ("auto", "svrg-sbb")}, None
    if peer is not None:  # A B A: the peer between two measurements of ours, the mean of which counts
        arrays = {"train": train.indices, "test": test.indices, "n": n, "p": 10}
        theirs = by_peer(peer, Path(__file__).with_name("peer_cblearn.py"), arrays, loss, LIMIT)
        for solver, found in ours.items():
            if found["epochs"] is not None:
                found["ms"] = (found["ms"] + time_fit(train, loss, solver, found["epochs"])) / 2
    return {"nearkin": ours, "plain": plain(train, test, loss), "cblearn": theirs}


def time_to_target(train: Comparisons, test: Comparisons, loss: str, solver: str) -> dict[str, Any]:
    """The epochs that reach the target, what a fit of so many costs, and the error of a fit that runs to its end."""
    epochs = next((k for k in range(1, 40) if error_after(train, test, loss, solver, k) <= TARGET), None)
    final = nk.OrdinalEmbedding(10, loss=loss, solver=solver, n_init=1, random_state=7).fit(train)
    found = {"epochs": epochs, "ms": None, "error": 1 - final.score(test), "final_epochs": final.n_iter_}
    if epochs is not None:
        found["ms"] = time_fit(train, loss, solver, epochs)
    return found


def plain(train: Comparisons, test: Comparisons, loss: str) -> dict[str, float]:
    """CPU seconds and error of a fit with every other parameter at its default, run to its end."""
    model = nk.OrdinalEmbedding(10, loss=loss, random_state=7)
    return {"seconds": seconds(lambda: model.fit(train), 3), "error": 1 - model.score(test)}


def time_fit(train: Comparisons, loss: str, solver: str, epochs: int) -> float:
    """Milliseconds of a whole fit() stopped after `epochs`: checks, shuffling, epochs and principal axes."""
    return 1e3 * seconds(lambda: fit_epochs(train.indices, loss, solver, epochs), 3 if len(train) > 200_000 else 7)


def fit_epochs(rows: Any, loss: str, solver: str, epochs: int) -> nk.OrdinalEmbedding:
    return nk.OrdinalEmbedding(10, loss=loss, solver=solver, n_init=1, max_iter=epochs, tol=0.0, random_state=7).fit(
        rows
    )


def error_after(train: Comparisons, test: Comparisons, loss: str, solver: str, epochs: int) -> float:
    return triplet_error(fit_epochs(train.indices, loss, solver, epochs).embedding_, test)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for n, m in SIZES[: 1 if given.quick else 3]:
        for loss in LOSSES[: 2 if n == 10_000 else 4]:
            work = partial(measured, n, m, loss, peer_python(given.peers))
            yield "ordinal_speed", Job({"n": n, "m": m, "loss": loss}, work)


def main() -> None:
    command(__doc__, jobs, {"target": TARGET, "p": 10})
