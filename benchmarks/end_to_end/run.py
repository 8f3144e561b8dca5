"""Learning the index with the towers, beside compressing afterwards, and what the layer costs.

python -m benchmarks end_to_end [--sets ml100k gowalla] [--parts quality rotations late speed]

quality: precision, recall and NDCG at 100 through the index at 4, 8 and 16 bytes; exact search, OPQ after training, and
the joint learning of `TwoTower(index=IndexingLayer(...))`, with p-values of paired t tests over the seeds.
rotations: the paper's Table 1: the same training by gradient under six rules for the rotation, the index started early.
late: the same from the towers of ALS and OPQ's rotation of them.
speed: the layer's step over its floor (two rotations, M distance tables), and the rotation update's share of a step.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from scipy.stats import f_oneway, ttest_rel

import nearkin as nk
from benchmarks.end_to_end.figures import draw
from benchmarks.end_to_end.problems import KEYS, measured, read
from benchmarks.end_to_end.speed import speed
from benchmarks.harness import limit_threads, save
from benchmarks.options import RESULTS, parser
from benchmarks.stored import read_json
from nearkin.quantization import IndexingLayer

BYTES = (4, 8, 16)
ROTATIONS = {
    "frozen": "frozen", "Cayley": "cayley", "GCD-R": "givens-random", "GCD-G": "givens-greedy",
    "GCD-S": "givens-steepest", "exact angles": "exact",
}  # fmt: skip
REGIMES: dict[str, dict[str, Any]] = {  # of full-batch Adam, straight through, at 4 bytes
    # random towers, the index started after five steps: what it started from moves away. Angle and bytes were chosen
    # on one seed of another, random split of ml100k.
    "rotations": {
        "n_test": 10,  # of every history: one pair a user measures too coarsely
        "layer": {"n_subspaces": 8, "n_centroids": 16, "warmup_steps": 5, "rotation_lr": 0.1},
        "solver": {"start": "random", "max_iter": 120, "learning_rate": 0.01},
    },
    # towers that ALS has finished
    "late": {
        "n_test": 1,
        "layer": {"n_subspaces": 4, "n_centroids": 256},
        "solver": {"max_iter": 60, "learning_rate": 0.003},
    },
}

Splits = Callable[[int], Any]
"""A seed to the parts of a data set, split and then fitted by it."""


def quality(splits: Splits, seeds: int) -> dict[str, Any]:
    """One record a seed and way; every way at 4, 8 and 16 bytes starts from the same kind of towers."""
    rows = []
    strength: Any = "auto"
    for seed in range(seeds):
        parts = splits(seed)
        for size in BYTES:
            layer = IndexingLayer(64, size, random_state=seed)
            start = time.process_time()
            model = nk.TwoTower(64, loss="all-pairs", index=layer, regularization=strength, random_state=seed)
            model.fit(parts.train, validation=parts.valid)
            seconds = time.process_time() - start
            strength = model.regularization_
            P, Q = model.exact_embeddings_
            after = nk.ProductQuantizer(size, random_state=seed).fit(Q)
            if size == BYTES[0]:
                rows.append({"seed": seed, "bytes": 256, "way": "exact", **measured(P, Q, parts)})
            rows.append(
                {"seed": seed, "bytes": size, "way": "OPQ after", **measured(P, after.decode(after.encode(Q)), parts)}
            )
            learned = measured(model.left_embeddings_, model.right_embeddings_, parts)
            rows.append({"seed": seed, "bytes": size, "way": "joint", "cpu_seconds": seconds, **learned})
            print(rows[-2], rows[-1], flush=True)
    return {"rows": rows, "summary": summary(rows)}


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds, the share of the gap to exact search that joint learning wins back, and a paired t's p."""
    exact = [row for row in rows if row["way"] == "exact"]
    table = []
    for size in sorted({row["bytes"] for row in rows} - {256}):
        for key in KEYS:
            after, joint = (
                [row[key] for row in rows if row["bytes"] == size and row["way"] == way]
                for way in ("OPQ after", "joint")
            )
            top, low, high = (statistics.mean(v) for v in ([row[key] for row in exact], after, joint))
            p = float(ttest_rel(after, joint).pvalue) if len(after) > 1 else None
            share = (high - low) / (top - low) if top > low else None
            table.append(
                {"bytes": size, "measure": key, "exact": top, "after": low, "joint": high, "share": share, "p": p}
            )
            print(table[-1], flush=True)
    return table


def rotations(parts: Any, seeds: int, regime: dict[str, Any]) -> dict[str, Any]:
    """Table 1's rows: training by gradient, straight through, each rule for the rotation from the same towers."""
    rows, curves = [], {}
    for seed in range(seeds):
        for name, kind in ROTATIONS.items():
            layer = IndexingLayer(64, rotation=kind, buffer_size=256, max_iter=30, random_state=seed, **regime["layer"])
            solver = nk.embedding.Adam(patience=regime["solver"]["max_iter"], **regime["solver"])
            model = nk.TwoTower(64, index=layer, solver=solver, regularization=0.01, random_state=seed)
            start = time.process_time()
            model.fit(parts.train)
            seconds = time.process_time() - start
            T = model.index_.to_quantizer()
            found = measured(model.left_embeddings_, T.decode(T.encode(model.right_embeddings_)), parts)
            rows.append({"seed": seed, "rotation": name, "cpu_seconds": seconds, **found})
            print(rows[-1], flush=True)
            if seed == 0:
                curves[name] = [entry["distortion"] for entry in model.history_ if entry["distortion"]]
    base = {key: [row[key] for row in rows if row["rotation"] == "frozen"] for key in KEYS}
    table = []
    for name in ROTATIONS:
        values = {key: [row[key] for row in rows if row["rotation"] == name] for key in KEYS}
        p = {f"p {key}": float(f_oneway(values[key], base[key]).pvalue) for key in KEYS} if seeds > 1 else {}
        table.append({"rotation": name, **{key: statistics.mean(v) for key, v in values.items()}, **p})
        print(table[-1], flush=True)
    return {"rows": rows, "summary": table, "curves": curves, **regime}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="*", default=["ml100k", "gowalla"])
    options.add_argument("--parts", nargs="+", default=["quality", *REGIMES, "speed"])
    options.add_argument("--seeds", type=int, default=5)
    chosen = options.parse_args()
    limit_threads(chosen.threads)
    if "speed" in chosen.parts:
        save("end_to_end_speed", speed(), threads=chosen.threads)
    for name in chosen.sets:
        file = RESULTS / f"end_to_end_{name}.json"
        entry: dict[str, Any] = read_json(file)["results"] if file.is_file() else {}
        for regime in [part for part in chosen.parts if part in REGIMES]:
            histories = read(chosen.data, name, REGIMES[regime]["n_test"], seed=0)
            entry[regime] = rotations(histories, 2 if chosen.quick else chosen.seeds, REGIMES[regime])
            if regime == "rotations":
                draw(entry[regime]["curves"], name)
        if "quality" in chosen.parts:
            entry["quality"] = quality(partial(read, chosen.data, name, 1), 1 if chosen.quick else chosen.seeds)
        save(f"end_to_end_{name}", entry, seeds=chosen.seeds)


if __name__ == "__main__":
    main()
