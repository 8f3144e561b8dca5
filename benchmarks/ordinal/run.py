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
from benchmarks.harness import by_peer, median_ms
from benchmarks.jobs import Job, Row, command
from benchmarks.options import peer_python
from benchmarks.ordinal.problems import TARGET, synthetic
from nearkin.metrics import triplet_error
from nearkin.records import Comparisons

LOSSES = ("ste", "gnmds", "t-ste", "soe")
SIZES = ((100, 10_000), (1000, 100_000), (10_000, 1_000_000))
LIMIT = 40.0  # seconds of cblearn


def measured(n: int, m: int, loss: str, peer: Path | None) -> Row:
    """Ours by default, and cblearn's."""
    train, test = synthetic(n, m, seed=0)
    ours, theirs = time_to_target(train, test, loss), None
    if peer is not None:  # A B A: the peer between two measurements of ours, the mean of which counts
        arrays = {"train": train.indices, "test": test.indices, "n": n, "p": 10}
        theirs = by_peer(peer, Path(__file__).with_name("peer_cblearn.py"), arrays, loss, LIMIT)
        if ours["epochs"] is not None:
            ours["ms"] = (ours["ms"] + time_fit(train, loss, ours["epochs"])) / 2
    return {"nearkin": ours, "plain": plain(train, test, loss), "cblearn": theirs}


def time_to_target(train: Comparisons, test: Comparisons, loss: str) -> dict[str, Any]:
    """The epochs that reach the target, what a fit of so many costs, and the error of a fit that runs to its end."""
    reached = (k for k in range(1, 40) if triplet_error(fit_epochs(train, loss, k).embedding_, test) <= TARGET)
    epochs, final = next(reached, None), nk.OrdinalEmbedding(10, loss=loss, n_init=1, random_state=7).fit(train)
    ms = None if epochs is None else time_fit(train, loss, epochs)
    return {"epochs": epochs, "ms": ms, "error": 1 - final.score(test), "final_epochs": final.n_iter_}


def plain(train: Comparisons, test: Comparisons, loss: str) -> dict[str, float]:
    """CPU seconds and error of a fit with every other parameter at its default, run to its end."""
    model = nk.OrdinalEmbedding(10, loss=loss, random_state=7)
    return {"seconds": median_ms({"": lambda: model.fit(train)}, 3)[""] / 1e3, "error": 1 - model.score(test)}


def time_fit(train: Comparisons, loss: str, epochs: int) -> float:
    """Milliseconds of a whole fit() stopped after `epochs`: checks, shuffling, epochs and principal axes."""
    return median_ms({"": lambda: fit_epochs(train, loss, epochs)}, 3 if len(train) > 200_000 else 7)[""]


def fit_epochs(train: Comparisons, loss: str, epochs: int) -> nk.OrdinalEmbedding:
    model = nk.OrdinalEmbedding(10, loss=loss, n_init=1, max_iter=epochs, tol=0.0, random_state=7)
    return model.fit(train.indices)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for n, m in SIZES[: 1 if given.quick else 3]:
        for loss in LOSSES[: 2 if n == 10_000 else 4]:
            work = partial(measured, n, m, loss, peer_python(given.peers))
            yield "ordinal_speed", Job({"n": n, "m": m, "loss": loss}, work)


def main() -> None:
    command(__doc__, jobs, {"target": TARGET, "p": 10})
