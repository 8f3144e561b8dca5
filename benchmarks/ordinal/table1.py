"""SVRG-SBB's Table I and Figure 2: every solver and loss on 100 points, 10,000 answers, several seeds."""

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ordinal.peers import run_peer
from benchmarks.ordinal.problems import TARGET, synthetic
from benchmarks.papers.svrg_ablations import LOSSES, SBB_0, convex_embedding, get_loss
from nearkin.contracts import Run
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.metrics import triplet_error
from nearkin.solvers import LBFGS, SGD, SVRG, AdaGrad, GradientDescent, Sequential

PEER_LOSSES = ("gnmds", "ckl", "ste", "t-ste")  # of these names in cblearn
BUDGET = 600  # gradient passes over the answers, after which a run counts as "not reached"
N, M, P = 100, 10_000, 10
# The authors' published steps, per term of f_q; on f = n / m sum f_q an epoch of m terms moves by step m / n.
PUBLISHED = {"svrg": {"t-ste": 0.02}, "sgd": {"t-ste": 5e-4}}
USUAL = {"svrg": 5e-4, "sgd": 1e-4}


def solvers(loss: str) -> dict[str, tuple[Any, int]]:
    """Name -> (solver, gradient passes per epoch)."""
    steps = {name: PUBLISHED[name].get(loss, USUAL[name]) * M / N for name in USUAL}
    found: dict[str, tuple[Any, int]] = {
        "gd fixed": (GradientDescent(step=1.0), 1),
        "gd sbb": (GradientDescent(), 1),
        "l-bfgs": (LBFGS(), 1),
        "sgd published step": (SGD(step=steps["sgd"]), 1),
        "sgd": (SGD(), 1),
        "svrg published step": (SVRG(step=steps["svrg"]), 3),
        "svrg hand-tuned": (SVRG(step=2.0), 3),
        "svrg-sbb0": (SBB_0, 3),
        "adagrad": (AdaGrad(), 1),
        "adagrad, then svrg-sbb": (Sequential(AdaGrad(), SVRG()), 3),
    }
    for batch in (1, 5, 10, 20, 50, 100, 200):
        found[f"svrg-sbb b={batch}"] = SVRG(batch_size=batch), 3
    return found


def measure(quick: bool, peer: Path | None = None) -> dict[str, Any]:
    seeds = range(2 if quick else 10)
    rows, curves = [], {}
    for loss in ("ste", "t-ste") if quick else LOSSES:
        for name, (solver, passes) in solvers(loss).items():
            runs = [time_one(loss, name, solver, passes, seed) for seed in seeds]
            times = [run["ms"] for run in runs if run["ms"] is not None]
            row = summary(loss, name, times, [run["final"] for run in runs])
            rows.append(row)
            curves.setdefault(loss, {})[name] = median_curve([run["curve"] for run in runs], passes)
            print(line(row), flush=True)
        if peer is not None and loss in PEER_LOSSES:
            rows.append(beside(peer, loss, seeds))
            print(line(rows[-1]), flush=True)
        if not quick:
            rows.append(convex(loss))
            print(line(rows[-1]), flush=True)
    return {"unit": "ms", "target": TARGET, "n": N, "m": M, "p": P, "seeds": len(seeds), "rows": rows, "curves": curves}


def summary(loss: str, name: str, times: list[float], finals: list[float]) -> dict[str, Any]:
    """A row of the table; `times` are those of the runs that reached the target."""
    row = {"loss": loss, "method": name, "reached": len(times), "of": len(finals)}
    row |= {"final_error": statistics.median(finals)}
    if times:
        row |= {"min": min(times), "mean": statistics.mean(times), "max": max(times), "std": float(np.std(times))}
    return row


def beside(peer: Path, loss: str, seeds: range) -> dict[str, Any]:
    """cblearn's L-BFGS on the same answers, by its own Python."""
    times, finals = [], []
    for seed in seeds:
        found = run_peer(peer, *synthetic(N, M, seed=seed), P, loss, limit=40.0)
        finals.append(found["error"])
        if found["seconds_to_target"] is not None:
            times.append(1e3 * found["seconds_to_target"])
    return summary(loss, "cblearn", times, finals)


def time_one(loss: str, name: str, solver: Any, passes: int, seed: int) -> dict[str, Any]:
    """One seed: errors after every epoch from a watched run, then the time of an unwatched one to the target."""
    train, test = synthetic(N, M, seed=seed)
    dtype = np.float64 if name == "l-bfgs" else np.float32
    start = pad_rows(np.random.default_rng([seed, 9]).normal(0, 0.1, (N, P)), dtype)
    curve = [triplet_error(unpad_rows(start, P), test)]

    def watch(step: int, record: dict[str, Any]) -> None:
        curve.append(triplet_error(unpad_rows(record["x"], P), test))

    def run(epochs: int, callback: Any = None) -> None:
        problem = OrdinalObjective(train.indices, N, get_loss(loss, P), dtype=dtype)
        solver.minimize(problem, start, Run(epochs, callback=callback))

    short = 60 if "published" not in name else BUDGET
    run(max(1, short // passes), watch)
    reached = next((k for k, error in enumerate(curve) if error <= TARGET), None)
    ms = None
    if reached:
        times = []
        for _ in range(3):
            began = time.process_time()
            run(reached)
            times.append(time.process_time() - began)
        ms = 1e3 * statistics.median(times)
    return {"ms": ms, "final": curve[-1], "curve": curve}


def median_curve(curves: list[list[float]], passes: int) -> dict[str, Any]:
    """Gradient passes of a step, and the median error after each step."""
    length = min(len(curve) for curve in curves)
    return {"passes": passes, "median": np.median([curve[:length] for curve in curves], axis=0).tolist()}


def convex(loss: str) -> dict[str, Any]:
    """The paper's "cvx" row: projected gradient on the Gram matrix, one seed and sixty steps."""
    train, test = synthetic(N, M, seed=0)
    began = time.process_time()
    X = convex_embedding(train, P, get_loss(loss, P), Run(60))
    ms, error = 1e3 * (time.process_time() - began), triplet_error(X, test)
    row = {"loss": loss, "method": "projected-gram (60 steps)", "reached": int(error <= TARGET), "of": 1}
    return row | {"final_error": error, "min": ms, "mean": ms, "max": ms, "std": 0.0}


def line(row: dict[str, Any]) -> str:
    times = "not reached" if "mean" not in row else "min {min:.2f} mean {mean:.2f} max {max:.2f} std {std:.2f} ms"
    reached = f"{row['reached']:>3}/{row['of']}"
    return f"{row['loss']:12}{row['method']:26}{reached} {times.format(**row):55}final {row['final_error']:.3f}"
