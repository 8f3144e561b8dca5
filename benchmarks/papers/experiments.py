"""What no other benchmark measures and minutes of one core can: one function and one JSON an experiment."""

import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from scipy.stats import spearmanr

import nearkin as nk
from benchmarks.harness import limit_threads, median_ms
from benchmarks.ordinal.music import keep_error
from benchmarks.ordinal.table1 import PUBLISHED, USUAL
from benchmarks.papers import flows_rl, gcd_figure_2, scq_whole
from benchmarks.papers.flows_convnet import flows_convnet
from benchmarks.papers.flows_counts import flows_counts
from benchmarks.papers.flows_mlp import flows_mlp
from benchmarks.papers.flows_sorting import flows_sorting
from benchmarks.papers.flows_theorem import flows_theorem
from benchmarks.papers.gcd_figure_3 import gcd_figure_3
from benchmarks.papers.jobs import Experiment, measure
from benchmarks.papers.svrg_draws import svrg_draws
from benchmarks.papers.svrg_figure_2 import svrg_figure_2
from benchmarks.papers.svrg_retrieval import svrg_retrieval
from examples import evolution_strategies, orthogonal_mlp
from examples.eurodist import align, ask, metric_scaling, read_distances
from nearkin.linalg.skew import right_skew

LOSSES = ("gnmds", "ckl", "ste", "t-ste")
BUDGETS = (12, 60)  # gradient passes over the answers: few, and so many that flipped answers are learned by heart


def published_step(solver: str, loss: str, answers: Any) -> float:
    """The authors' step per term of f_q, in our units of an epoch on the objective per object."""
    return PUBLISHED[solver].get(loss, USUAL[solver]) * len(answers) / answers.n_objects


def mlp(data: Path) -> list[dict[str, Any]]:
    """Flows, Figure 4: accuracy on MNIST of a tanh network whose layers are kept orthogonal, or not."""
    *arrays, name = orthogonal_mlp.read(data)
    epochs, rows = 6, []
    for method, build in orthogonal_mlp.METHODS.items():
        lr = orthogonal_mlp.choose(build, tuple(arrays), epochs)
        runs = np.array([orthogonal_mlp.train(build, lr, tuple(arrays), epochs, seed) for seed in (1, 2, 3)])
        row = {"method": method, "data": name, "images": len(arrays[0]), "epochs": epochs, "lr": lr}
        row |= {"train": runs[:, -1, 0].mean(), "test": runs[:, -1, 1].mean(), "test std": runs[:, -1, 1].std()}
        rows.append({key: float(value) if isinstance(value, np.floating) else value for key, value in row.items()})
        print(rows[-1], flush=True)
    return rows


def entries(data: Path) -> dict[str, Any]:
    """Flows, Figure 6: rho(s) = ||Omega||_1 / (its d/s C(s, 2) largest entries) along evolution strategies, d = 200.

    CartPole from positions in place of Humanoid. Both sums take every pair i < j once.
    """
    del data
    d, generations, sizes = 200, 30, (2, 4, 5, 10, 20, 25, 50)
    found: dict[int, list[float]] = {s: [] for s in sizes}

    def watched(parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        optimizer = evolution_strategies.METHODS["stochastic flow, s = 2"](parameters)
        optimizer.register_step_pre_hook(lambda *_: keep(parameters[0]))
        return optimizer

    def keep(W: torch.Tensor) -> None:
        Omega = right_skew(W.detach(), W.grad)
        magnitudes = Omega[*torch.triu_indices(d, d, 1)].abs().sort(descending=True).values.double()
        for s in sizes:
            found[s].append(float(magnitudes.sum() / magnitudes[: d * (s - 1) // 2].sum()))

    environments = gymnasium.make_vec("CartPole-v1", 64, vectorization_mode=gymnasium.VectorizeMode.VECTOR_ENTRY_POINT)
    reward = evolution_strategies.train(environments, watched, generations, d, 0)
    print({s: (min(values), max(values)) for s, values in found.items()})
    return {"d": d, "rho": {str(s): values for s, values in found.items()}, "reward": reward}


def eurodist(data: Path) -> list[dict[str, Any]]:
    """SVRG-SBB, Figure 3: 21 cities from 2,000 of the 3,990 answers, judged by the others and by the road distances."""
    _, distances = read_distances(data / "eurodist.csv")
    train, test = np.split(ask(distances), [2000])
    reference = metric_scaling(distances)
    rows = [map_row("metric scaling", reference, reference, distances, test)]
    for loss in LOSSES:
        for solver in ("svrg-sbb", "gd", "projected-gram"):
            model = nk.OrdinalEmbedding(2, loss=loss, solver=solver, random_state=0).fit(train)
            X = align(model.embedding_.astype(float), reference)
            rows.append(map_row(f"{loss}, {solver}", X, reference, distances, test))
    return rows


def map_row(name: str, X: np.ndarray, reference: np.ndarray, distances: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """How well a map of the cities agrees with held-out answers, with the roads and with metric scaling."""
    upper = np.triu_indices(len(X), 1)
    apart = np.linalg.norm(X[:, None] - X, axis=2)
    row = {
        "method": name,
        "error": float(nk.metrics.triplet_error(X, test)),
        "rank correlation": float(spearmanr(apart[upper], distances[upper]).statistic),
        "km from metric scaling": float(np.linalg.norm(X - reference, axis=1).mean()),
    }
    print(row, flush=True)
    return row


def music(data: Path) -> list[dict[str, Any]]:
    """SVRG-SBB, Figure 4: what `ordinal --music` leaves out: SBB_0, and the rivals with their published steps."""
    answers = nk.read_comparisons(data / "music_triplets.npz", on_invalid="drop")
    rows = []
    for loss in LOSSES:
        for solver, passes in (("svrg-sbb", 3), ("svrg-sbb0", 3), ("svrg", 3), ("sgd", 1)):
            epochs, curves, broken = BUDGETS[-1] // passes, [], 0
            for seed in range(10):
                train, test = nk.data.split_comparisons(answers, 0.2, random_state=seed)
                step = None if "sbb" in solver else published_step(solver, loss, train)
                curve: list[float] = []
                model = nk.OrdinalEmbedding(
                    9, loss=loss, solver=solver, step=step, n_init=1, max_iter=epochs, tol=0.0, random_state=100 + seed
                )
                try:
                    model.fit(train, callback=partial(keep_error, curve, test))
                except FloatingPointError:
                    broken += 1
                curves.append(curve + [0.5] * (epochs + 1 - len(curve)))  # a run that ended early guesses
            median = [float(value) for value in np.median(curves, axis=0)]
            rows.append(
                {"loss": loss, "solver": solver, "passes": passes, "diverged": broken, "of": 10, "median": median}
            )
            print(loss, solver, broken, [f"{value:.3f}" for value in median[::4]], flush=True)
    return rows


def value_and_gradient(data: Path) -> list[dict[str, Any]]:
    """ESL, eqs. 15 and 28: CPU milliseconds of one function value and of one gradient, 100 pairs a row, k = 64."""
    del data
    rows = []
    for m in (2000, 8000):
        rng = np.random.default_rng(0)
        pairs = nk.Interactions.from_pairs(np.repeat(np.arange(m), 100), rng.integers(0, m, 100 * m))
        loss = nk.embedding.AllPairsLoss(pairs.matrix(), omega=0.01, labels=1.0)
        P, Q = (torch.from_numpy(rng.standard_normal((n, 64), dtype=np.float32)) / 8 for n in pairs.matrix().shape)
        functions = {
            "value": lambda f=loss, P=P, Q=Q: f.at(P, Q).value(),
            "gradient": lambda f=loss, P=P, Q=Q: f.gradient(P, Q),
        }
        rows.append({"m": m, **median_ms(functions, 5)})
        print(rows[-1], flush=True)
    return rows


RUNS: dict[str, Experiment] = {
    "gcd_figure_2": Experiment(gcd_figure_2.jobs, gcd_figure_2.FULL, gcd_figure_2.SMALL),
    "gcd_figure_3": gcd_figure_3,
    "svrg_draws": svrg_draws,
    "svrg_figure_2": svrg_figure_2,
    "flows_sorting": flows_sorting,
    "flows_mlp": flows_mlp,
    "flows_convnet": flows_convnet,
    "flows_counts": flows_counts,
    "flows_theorem": flows_theorem,
    "flows_rl": Experiment(flows_rl.jobs, flows_rl.FULL, flows_rl.SMALL),
    "mlp": mlp,
    "entries": entries,
    "scq_gist": Experiment(scq_whole.gist, scq_whole.FULL, scq_whole.SMALL),
    "scq_scale": Experiment(scq_whole.scale, scq_whole.FULL, scq_whole.SMALL),
    "scq_seconds": Experiment(scq_whole.seconds, scq_whole.FULL, scq_whole.SMALL),
    "scq_table_2": Experiment(scq_whole.table_2, scq_whole.FULL, scq_whole.SMALL),
    "eurodist": eurodist,
    "music": music,
    "svrg_retrieval": svrg_retrieval,
    "value_and_gradient": value_and_gradient,
}


def run(names: Iterable[str], data: Path, *, small: bool, again: bool, minutes: float) -> None:
    """Run the named experiments, each into results/papers_NAME.json; after `minutes` no job is begun."""
    limit_threads(1)
    until = time.monotonic() + 60 * minutes
    for name in names:
        print(f"== {name}", flush=True)
        experiment = RUNS[name]
        jobs = experiment.jobs(data, experiment.small if small else experiment.full)
        if not measure(name, jobs, data, again=again, until=until):
            print("The time is up; the same command goes on from here.")
            return
