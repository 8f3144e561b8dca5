"""Two-tower learning: every solver and loss, NDCG@100 and Recall@20 against seconds, implicit's ALS beside.

    python benchmarks/two_tower.py --data ../shared/data [--sets ml100k gowalla] [--peer-python PYTHON] [--quick]
    python benchmarks/two_tower.py --scaling       one gradient and one Gauss-Newton product against m + n
    python benchmarks/two_tower.py --cold          unseen rights with and without features, planted data
    python benchmarks/two_tower.py --figures       docs/figures from the JSON

Results are merged into benchmarks/results/two_tower.json by set. Seconds are CPU seconds of one thread, the choice of
the regularization included where it is "auto"; `--peer-python` is a Python with implicit. Its settings are chosen on
the validation pairs from 30, those of "als, tuned" from 25, and the seconds of both are those of the one best fit.
"""

import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import resource
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks import harness
import numpy as np
import scipy.sparse as sp
import torch

import nearkin as nk
from nearkin.data.interaction_split import Parts

DEPTHS = (20, 100)
WAYS = {
    "als": {},
    "als, lambda given": {"solver": "als", "max_steps": 8},
    "als, tuned": {"solver": "als", "max_steps": 8},
    "ials++": {"solver": "ials++"},
    "adam, from als": {"solver": "adam"},
    "adam, random start": {"solver": "adam", "start": "random", "learning_rate": 0.01},
    "gauss-newton, alternating": {"solver": "gauss-newton", "start": "random"},
    "gauss-newton, joint": {"solver": "gauss-newton-joint", "start": "random"},
    "sub-blocks": {"solver": "sub-blocks", "start": "random", "learning_rate": 0.01},
    "sogram": {"solver": "sogram", "start": "random", "learning_rate": 0.01},
    "l-bfgs": {"solver": "l-bfgs", "start": "random"},
    "in-batch softmax": {"loss": "in-batch-softmax", "batch_size": 1024, "learning_rate": 0.01},
    "sampled bce": {"loss": "sampled-bce", "learning_rate": 0.01},
}


def read(name: str, folder: Path, seed: int) -> Parts:
    if name == "gowalla":
        return nk.data.split_given(nk.read_interactions(folder / "gowalla.npz"))
    return nk.data.split_random(nk.read_interactions(folder / f"{name}.npz", min_weight=4), random_state=seed)


def test_metrics(left: np.ndarray, right: np.ndarray, parts: Parts) -> dict[str, float]:
    found = nk.metrics.ranking_metrics(left, right, parts.test, seen=parts.train, k=DEPTHS, metrics=("recall", "ndcg"))
    return {"ndcg@100": found["ndcg@100"], "recall@20": found["recall@20"]}


def run_way(way: dict, parts: Parts, seed: int, seconds: float) -> dict:
    """One fit; all but the plain ALS watch the validation pairs."""
    validation = None if way.get("solver", "als") in ("als", "ials++") else parts.valid
    start = time.process_time()
    model = nk.TwoTower(64, random_state=seed, max_seconds=seconds, **way)
    model.fit(parts.train, validation=validation)
    used = time.process_time() - start
    curve = [[round(r["seconds"], 3), r["metric"]] for r in model.history_ if "metric" in r]
    return test_metrics(model.left_embeddings_, model.right_embeddings_, parts) | {
        "seconds": used, "steps": len(model.history_), "regularization": model.regularization_, "curve": curve,
    }  # fmt: skip


def tuned(way: dict, parts: Parts, seed: int) -> dict:
    """The best of 25 weights and strengths around the default ones, by NDCG@100 of the validation pairs."""
    default = nk.TwoTower(64, random_state=seed, **way).fit(parts.train)
    model = nk.TwoTower(64, random_state=seed, **way)
    best = model.tune(
        parts.train, parts.valid,
        omegas=[share * default.omega_ for share in (0.125, 0.25, 0.5, 1, 2)],
        regularizations=[share * default.regularization_ for share in (0.5, 0.7, 1, 1.4, 2)],
    )[0]  # fmt: skip
    return {name: best[name] for name in ("omega", "regularization")}


def run_peer(python: str, parts: Parts, seed: int, settings: list | None = None) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        arrays = {"shape": parts.train.shape}
        for name in ("train", "valid"):
            part = getattr(parts, name)
            arrays |= {f"{name}_indptr": part.indptr, f"{name}_indices": part.indices}
        np.savez(f"{folder}/split.npz", **arrays)
        script = Path(__file__).with_name("peer_implicit.py")
        command = [
            python,
            script,
            f"{folder}/split.npz",
            f"{folder}/out.npz",
            "64",
            str(seed),
            *map(str, settings or []),
        ]
        subprocess.run(command, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        with np.load(f"{folder}/out.npz") as z:
            found = test_metrics(z["left"], z["right"], parts)
            return found | {"seconds": float(z["seconds"]), "settings": z["settings"].tolist()}


def compare(name: str, options, keep) -> None:
    """Every way over the seeds; `keep` gets all means and standard deviations after each fit."""
    nk.TwoTower(4, random_state=0).fit(nk.data.planted_interactions(50, 40, random_state=0).interactions)  # compiles
    rows: dict[str, list[dict]] = {}
    best: dict = {}
    for seed in range(options.seeds):
        parts = read(name, options.data, seed)
        popular = np.asarray(parts.train.matrix().sum(axis=0), dtype=np.float32)
        one = np.ones((parts.train.shape[0], 1), np.float32)
        rows.setdefault("popularity", []).append(test_metrics(one, popular.T, parts) | {"seconds": 0.0})
        if options.peer_python:
            fixed = name == "gowalla" and seed > 0  # its split is given, so the settings chosen once are the settings
            settings = rows["implicit als"][0]["settings"] if fixed else None
            rows.setdefault("implicit als", []).append(run_peer(options.peer_python, parts, seed, settings))
        strength = None
        for label, way in WAYS.items():
            if options.ways and not any(label.startswith(w) for w in options.ways):
                continue
            way = dict(way)
            if "given" in label:
                if strength is None:
                    continue
                way["regularization"] = strength
            if "tuned" in label:
                best = best if name == "gowalla" and best else tuned(way, parts, seed)
                way |= best
            found = run_way(way, parts, seed, options.seconds)
            strength = found["regularization"] if label == "als" else strength
            rows.setdefault(label, []).append(found)
            keep({label: summary(runs) for label, runs in rows.items()})
            print(name, seed, label, {k: round(v, 4) for k, v in found.items() if isinstance(v, float)}, flush=True)


def summary(runs: list[dict]) -> dict:
    keys = ("ndcg@100", "recall@20", "seconds")
    means = {key: float(np.mean([r[key] for r in runs])) for key in keys}
    spread = {f"{key} std": float(np.std([r[key] for r in runs])) for key in keys}
    return (
        means
        | spread
        | {"seeds": len(runs), "curve": runs[0].get("curve", []), "runs": [r["ndcg@100"] for r in runs]}
        | ({"settings": [r["settings"] for r in runs]} if "settings" in runs[0] else {})
    )


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def scaling(options) -> list[dict]:
    """CPU milliseconds of one gradient and one product against m = n, and of brute force where it fits."""
    sizes = (1000, 4000, 16000) if options.quick else (1000, 2000, 4000, 8000, 16000, 32000, 64000)
    found = []
    for m in sizes:
        found.append(one_size(m, brute=m <= (4000 if options.quick else 16000)))
        print(found[-1], flush=True)
    big = [r for r in found if r["m"] >= 4000]
    slopes = {key: slope([r["m"] for r in big], [r[key] for r in big]) for key in ("gradient", "product")}
    print("slopes", slopes)
    return [*found, {"slopes": slopes}]


def one_size(m: int, brute: bool) -> dict:
    """k = 64 and 100 random pairs a row."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, m, 100 * m), np.arange(0, 100 * m + 1, 100)
    pairs = sp.csr_matrix((np.ones(100 * m, np.float32), *places), shape=(m, m))
    loss = nk.embedding.AllPairsLoss(pairs, omega=0.01, labels=1.0)
    P, Q, W, H = (torch.from_numpy(rng.standard_normal((m, 64), dtype=np.float32)) / 8 for _ in range(4))
    point, values = loss.at(P, Q), torch.zeros(len(loss.pairs.indices))
    functions = {
        "gradient": lambda: loss.gradient(P, Q),
        "product": lambda: point.gauss_newton_product(W, H),
        "floor": lambda: floor(loss, P, Q, values),
    }
    row = {"m": m, **harness.median_ms(functions, 3 if m > 8000 else 5), "peak_gb": peak_gb()}
    if brute:
        observed = torch.from_numpy(pairs.toarray()) > 0
        row |= harness.median_ms({"brute force": lambda: brute_force(P, Q, observed)}, 2)
    return row


def floor(loss, P: torch.Tensor, Q: torch.Tensor, values: torch.Tensor) -> None:
    """The products that no gradient can do without: both Gramians and P Q_c, Q P_c, and three passes over the pairs."""
    P @ (Q.T @ Q), Q @ (P.T @ P)
    loss.pairs.dots(P, Q), loss.pairs.times_right(values, Q), loss.pairs.times_left(values, P)


def brute_force(P: torch.Tensor, Q: torch.Tensor, observed: torch.Tensor) -> None:
    P, Q = P.clone().requires_grad_(), Q.clone().requires_grad_()
    Z = P @ Q.T
    torch.where(observed, 0.5 * (1 - Z) ** 2, 0.005 * Z**2).sum().backward()


def slope(x: list, y: list) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def cold(options) -> dict:
    """200 of 1,500 rights lose all their pairs: NDCG@20 among them, and NDCG@100 on the others."""
    rows: dict[str, list] = {}
    for seed in range(options.seeds):
        planted = nk.data.planted_interactions(3000, 1500, pairs_per_row=30, random_state=seed)
        unseen = np.sort(np.random.default_rng(seed).choice(1500, 200, replace=False))
        hidden = np.isin(planted.interactions.indices, unseen)
        parts = nk.data.split_random(planted.interactions.select(~hidden), random_state=seed)
        truth = planted.interactions.select(hidden).matrix()[:, unseen]
        bare = nk.Interactions.from_pairs(
            parts.train.rows, parts.train.indices, left_ids=parts.train.left_ids, right_ids=parts.train.right_ids
        )
        best = planted.affinities, np.eye(1500)
        rows.setdefault("planted order", []).append((test_metrics(*best, parts), best[0], best[1][unseen], truth, 0.0))
        for label, pairs in (("als, no features", bare), ("als, features", parts.train)):
            start = time.process_time()
            model = nk.TwoTower(32, random_state=seed).fit(pairs)
            used = time.process_time() - start
            P, Q = model.left_embeddings_, model.right_embeddings_
            rows.setdefault(label, []).append((test_metrics(P, Q, parts), P, Q[unseen], truth, used))
    result = {}
    for label, runs in rows.items():
        unseen_ndcg = [nk.metrics.ranking_metrics(P, Q, truth, k=20)["ndcg@20"] for _, P, Q, truth, _ in runs]
        warm, seconds = (float(np.mean(v)) for v in ([r[0]["ndcg@100"] for r in runs], [r[4] for r in runs]))
        result[label] = {"warm ndcg@100": warm, "cold ndcg@20": float(np.mean(unseen_ndcg)), "seconds": seconds}
        print(label, result[label], flush=True)
    return result


def figures(results: dict) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    harness.FIGURES.mkdir(parents=True, exist_ok=True)
    for name in ("ml100k", "gowalla"):
        if name not in results:
            continue
        fig, axis = plt.subplots(figsize=(7, 4.2))
        for label, row in results[name].items():
            if row["seconds"] > 0:
                axis.plot(row["seconds"], row["ndcg@100"], "s" if "implicit" in label else "o")
                axis.annotate(label, (row["seconds"], row["ndcg@100"]), (4, 3), textcoords="offset points", fontsize=8)
        axis.set(xscale="log", xlabel="CPU seconds of one thread", ylabel="test NDCG@100", title=f"{name}, k = 64")
        fig.tight_layout()
        fig.savefig(harness.FIGURES / f"two_tower_{name}.svg")
    if "scaling" in results:
        fig, axis = plt.subplots(figsize=(5.5, 4))
        rows = [r for r in results["scaling"] if "m" in r]
        for key in ("brute force", "gradient", "product", "floor"):
            known = [r for r in rows if key in r]
            axis.loglog([r["m"] for r in known], [r[key] for r in known], "o-", label=key)
        axis.set(xlabel="m = n", ylabel="CPU milliseconds", title="k = 64, 100 pairs a row, one thread")
        axis.legend()
        fig.tight_layout()
        fig.savefig(harness.FIGURES / "two_tower_scaling.svg")


def main() -> None:
    options = harness.parser(__doc__)
    options.add_argument("--sets", nargs="*", default=["ml100k", "gowalla"])
    options.add_argument("--ways", nargs="*", help="beginnings of the names of the ways to run")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=20.0, help="no step begins after so many seconds")
    options.add_argument("--peer-python")
    for flag in ("scaling", "cold", "figures"):
        options.add_argument(f"--{flag}", action="store_true")
    options = options.parse_args()
    harness.limit_threads(options.threads)
    path = harness.RESULTS / "two_tower.json"
    results = json.loads(path.read_text())["results"] if path.exists() else {}
    if options.quick:
        options.seeds, options.seconds = 1, min(options.seconds, 3.0)
    if options.scaling:
        results["scaling"] = scaling(options)
    elif options.cold:
        results["cold"] = cold(options)
    elif not options.figures:
        for name in options.sets:
            before = results.get(name, {})

            def keep(found: dict, name: str = name, before: dict = before) -> None:
                results[name] = before | found
                harness.save("two_tower", results, threads=options.threads)

            compare(name, options, keep)
    if not options.figures:
        harness.save("two_tower", results, threads=options.threads)
    figures(results)


if __name__ == "__main__":
    main()
