"""Product quantizers beside FAISS's: distortion, recall, CPU time.

    python -m benchmarks quantization --quick --parts faiss recall

1. CPU seconds until the held-out distortion at which FAISS's OPQMatrix ends after 20 iterations from the identity, and
   beside FAISS's default call (random start, 50 iterations); each ends with its own full k-means for the codes.
2. Held-out distortion of every rotation and start, relative to plain PQ, with a random rotation beside them.
3. Recall at equal bytes, with FAISS's RaBitQ.
4. Encoding beside FAISS's own encoder.
5. The paper's Figure 2: distortion against time for every update, and the spread over seeds (all rows, 10 % of them).

CPU time of all threads is what is compared, since these machines are shared.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks.harness import cpu_seconds, limit_threads, load, save
from benchmarks.options import parser, peer_python
from benchmarks.quantization.figures import draw
from benchmarks.quantization.peers import faiss_opq, nanopq
from nearkin import Index, ProductQuantizer
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import training
from nearkin.quantization.rotation import ROTATIONS

DISJOINT = [name for name in ROTATIONS if name not in ("none", "givens-steepest")]


def decoded_error(index: Any, X: np.ndarray) -> float:
    return float(((X - index.sa_decode(index.sa_encode(X))) ** 2).sum(1).mean())


def time_to_reach(X: np.ndarray, test: np.ndarray, target: float, M: int, K: int, **params: Any) -> dict[str, float]:
    """CPU seconds of the shortest `fit` whose held-out distortion is at most `target`, and of the default one."""
    out = {}
    for rounds in (2, 4, 6, 8, 10, 12, 14, 16, 18, 21, 25, 30, 40, 60):
        pq = ProductQuantizer(M, K, max_iter=rounds, tol=0, random_state=0, **params)
        seconds, _ = cpu_seconds(lambda pq=pq: pq.fit(X))
        out = {"rounds": rounds, "seconds": seconds, "distortion": pq.distortion(test)}
        if out["distortion"] <= target:
            return out
    return {**out, "seconds": float("nan")}


def against_faiss(folder: Path, quick: bool, peer: Path | None) -> list[dict[str, Any]]:
    cases = [("sift", 8, 8), ("sift", 32, 4)]
    if not quick:
        cases[1:1] = [("sift", 16, 8)]
        cases += [("mnist", 16, 8), ("gaussian", 8, 8), ("heavy", 8, 8), ("gaussian", 32, 4)]
    rows = []
    for name, M, bits in cases:
        X, held_out, _ = load(name, folder)
        test, K = held_out[:20_000], 1 << bits
        row: dict[str, Any] = {"data": name, "M": M, "bits": bits}
        for label, start, n_iter in (("identity, 20", "identity", 20), ("default", "random", None)):
            seconds, index = cpu_seconds(lambda s=start, i=n_iter, X=X, M=M, b=bits: faiss_opq(X, M, b, s, i))
            row[f"FAISS {label}"] = {"seconds": seconds, "distortion": decoded_error(index, test)}
        row["nanopq"] = nanopq(peer, X, test, M, K)
        target = row["FAISS identity, 20"]["distortion"]
        row["ours to that"] = time_to_reach(X, test, target, M, K, init="identity")
        row["ours to default's"] = time_to_reach(X, test, row["FAISS default"]["distortion"], M, K)
        if "distortion" in row["nanopq"]:
            row["ours to nanopq's"] = time_to_reach(X, test, row["nanopq"]["distortion"], M, K)
        pq = ProductQuantizer(M, K, random_state=0)
        seconds, _ = cpu_seconds(lambda pq=pq, X=X: pq.fit(X))
        row["ours, default"] = {"seconds": seconds, "distortion": pq.distortion(test)}
        rows.append(row)
        a, b = row["FAISS identity, 20"], row["FAISS default"]
        c, e, d = row["ours to that"], row["ours to default's"], row["ours, default"]
        print(
            f"{name:9s}{M:3d} x {bits} bits | FAISS identity {a['seconds']:6.1f} s {a['distortion']:.5g}"
            f" | to that {c['seconds']:5.2f} s ({c['seconds'] / a['seconds']:.3f}, {c['rounds']} rounds)"
            f" | FAISS default {b['seconds']:6.1f} s {b['distortion']:.5g}"
            f" | to that {e['seconds']:5.2f} s ({e['seconds'] / b['seconds']:.3f})"
            f" | default fit {d['seconds']:5.1f} s ({d['seconds'] / b['seconds']:.3f}) {d['distortion']:.5g}",
            flush=True,
        )
    return rows


def every_rotation(folder: Path, quick: bool) -> list[dict[str, Any]]:
    cases = [("sift", 8, 256)]
    if not quick:
        cases += [("sift", 16, 256), ("gaussian", 8, 256), ("heavy", 8, 256), ("blobs", 8, 256), ("sift", 32, 16)]
    rows = []
    for name, M, K in cases:
        X, held_out, _ = load(name, folder)
        X, test = X[:20_000], held_out[:10_000]
        ways: dict[str, tuple[str | None, str]] = {"none": (None, "auto")}
        ways |= {rotation: (rotation, "identity") for rotation in DISJOINT}
        ways |= {f"procrustes, {init}": ("procrustes", init) for init in ("pca", "random", "auto")}
        row: dict[str, Any] = {"data": name, "M": M, "K": K}
        for label, (rotation, init) in ways.items():
            row[label] = ProductQuantizer(M, K, rotation, init, random_state=0).fit(X).distortion(test)
        R = np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1],) * 2))[0].astype(np.float32)
        row["random rotation"] = ProductQuantizer(M, K, None, random_state=0).fit(X @ R).distortion(test @ R)
        rows.append(row)
        print(f"{name} M={M} K={K}: plain PQ {row['none']:.5g}; relative to it:")
        relative = ((k, v / row["none"]) for k, v in row.items() if k not in ("data", "M", "K", "none"))
        print("   " + ", ".join(f"{k} {v:.4f}" for k, v in relative), flush=True)
    return rows


def recall_at_equal_bytes(folder: Path) -> list[dict[str, Any]]:
    """k-recall@10 against exact neighbours among 50,000 rows; RaBitQ needs d/8 + 8 bytes."""
    rows = []
    for name in ("sift", "gaussian"):
        X, held_out, Q = load(name, folder)
        base, Q = held_out[:50_000], Q[:500]
        truth = Index.build(base).search(Q, 10)[1]
        rabitq = faiss.IndexRaBitQ(base.shape[1])
        rabitq.train(X)
        rabitq.add(base)
        found = {f"RaBitQ ({rabitq.code_size} bytes)": rabitq.search(Q, 10)[1]}
        for M in (8, 16, 32):
            for label, rotation in (("PQ", None), ("learned rotation", "procrustes")):
                pq = ProductQuantizer(M, 256, rotation, max_iter=15, random_state=0).fit(X[:20_000])
                found[f"{label} ({M} bytes)"] = Index.build(base, pq).search(Q, 10)[1]
        row = {"data": name, **{k: recall_k_at_k(v, truth, 10) for k, v in found.items()}}
        rows.append(row)
        print(name, {k: round(v, 3) for k, v in row.items() if k != "data"}, flush=True)
    return rows


def encoding(folder: Path) -> dict[str, float]:
    X, held_out, _ = load("sift", folder)
    rows = np.resize(held_out, (100_000, 128))
    pq = ProductQuantizer(16, 256, max_iter=2, random_state=0).fit(X[:10_000])
    index = pq.to_faiss()
    out: dict[str, list[float]] = {"ours": [], "FAISS": []}
    for _ in range(4):
        out["ours"].append(cpu_seconds(lambda: pq.encode(rows))[0])
        out["FAISS"].append(cpu_seconds(lambda: index.sa_encode(rows))[0])
    medians = {name: float(np.median(values)) for name, values in out.items()}
    print("encoding 100,000 x 128 to 16 bytes, CPU seconds:", medians, flush=True)
    return medians


def curves(folder: Path, quick: bool) -> dict[str, Any]:
    """Distortion after each round against seconds (Figure 2a), and over seeds on 100 % and 10 % of the rows (2b, c).

    "procrustes" is OPQ as the papers have it, without overrelaxation.
    """
    training.DEFAULTS = replace(training.DEFAULTS, beyond=0.0)
    X = load("sift", folder)[0][: 10_000 if quick else 40_000]
    lines = {}
    names = ["procrustes", "givens-greedy", "givens-random", "cayley"] + ([] if quick else ["givens-steepest"])
    for name in names:
        stamps: list[tuple[float, float]] = []
        start = time.process_time()
        blocks = 5  # the paper's number
        pq = ProductQuantizer(8, 256, name, "identity", n_blocks=blocks, tol=0, max_iter=20, random_state=0)
        pq.fit(X, callback=lambda _, r, s=stamps, t=start: s.append((time.process_time() - t, r["distortion"])))
        lines[name] = stamps
    spread = {}
    for share in (1.0, 0.1):
        for name in ("procrustes", "givens-greedy"):
            runs = []
            for seed in range(3 if quick else 10):
                rows = np.random.default_rng(seed).choice(len(X), int(share * len(X)), replace=False)
                pq = ProductQuantizer(8, 256, name, "identity", tol=0, max_iter=15, random_state=seed).fit(X[rows])
                runs.append([entry["distortion"] for entry in pq.history_])
            spread[f"{name}, {share:.0%}"] = runs
    return {"lines": lines, "spread": spread}


PARTS = ("faiss", "rotations", "recall", "encoding", "convergence")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="some of the five only")
    options = options.parse_args()
    limit_threads(options.threads)
    run = {
        "faiss": lambda: against_faiss(options.data, options.quick, peer_python(options.peers)),
        "rotations": lambda: every_rotation(options.data, options.quick),
        "recall": lambda: recall_at_equal_bytes(options.data),
        "encoding": lambda: encoding(options.data),
        "convergence": lambda: curves(options.data, options.quick),
    }
    for part in options.parts:
        results = run[part]()
        name = f"quantization_{part}"
        print(save(name, results, data=options.data, quick=options.quick, threads=options.threads), flush=True)
        if part == "convergence":
            print(draw(results))


if __name__ == "__main__":
    main()
