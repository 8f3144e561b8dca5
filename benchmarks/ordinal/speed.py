"""Time until 15 % held-out error, and the final error, beside cblearn on the same answers in the same run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nearkin as nk
from benchmarks.ordinal.peers import run_peer
from benchmarks.ordinal.problems import TARGET, seconds, synthetic
from nearkin.metrics import triplet_error
from nearkin.records import Comparisons

LOSSES = ("ste", "gnmds", "t-ste", "soe")
SIZES = ((100, 10_000), (1000, 100_000), (10_000, 1_000_000))


def measure(quick: bool, peer: Path | None, save: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """`save` is called after every row: the largest size takes minutes."""
    record: dict[str, Any] = {"target": TARGET, "p": 10, "n_init": 1, "rows": []}
    for n, m in SIZES[: 1 if quick else 3]:
        train, test = synthetic(n, m, seed=0)
        for loss in LOSSES[: 2 if n == 10_000 else 4]:
            ours = {solver: time_to_target(train, test, loss, solver) for solver in ("auto", "svrg-sbb")}
            theirs = None
            if peer is not None:  # A B A: the peer between two measurements of ours, the mean of which counts
                theirs = run_peer(peer, train, test, 10, loss, limit=40.0)
                for solver, found in ours.items():
                    if found["epochs"] is not None:
                        again = time_fit(train, loss, solver, found["epochs"])
                        found["ms"] = (found["ms"] + again) / 2
            row = {"n": n, "m": m, "loss": loss, "nearkin": ours, "plain": plain(train, test, loss), "cblearn": theirs}
            record["rows"].append(row)
            print(line(record["rows"][-1]), flush=True)
            save(record)
    return record


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


def line(row: dict[str, Any]) -> str:
    text = f"{row['n']:>6} {row['m']:>8} {row['loss']:6}"
    for solver, found in row["nearkin"].items():
        time = "never" if found["ms"] is None else f"{found['ms']:.1f} ms"
        text += f" | {solver} {time} (epochs {found['epochs']}), final {found['error']:.3f}"
    if row["cblearn"] is not None:
        theirs = row["cblearn"]
        reached = theirs["seconds_to_target"]
        time = f"{1e3 * reached:.0f} ms" if reached is not None else f"not in {theirs['seconds']:.0f} s"
        text += f" | cblearn {time}, final {theirs['error']:.3f}"
        best = row["nearkin"]["auto"]["ms"]
        if best is not None:
            text += f" | ratio {1e3 * (reached or theirs['seconds']) / best:.0f}{'' if reached else '+'}"
    return text
