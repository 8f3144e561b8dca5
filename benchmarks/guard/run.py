"""Values of the plain calls on the shared data, a query each, compared with those that are kept here.

    make guard                              fails on a mean loss beyond two standard errors, paired by query
    make guard STORE=1                      keeps the values of this tree
    python -m benchmarks.guard.run --only codes
    git bisect run env PYTHONPATH=src python COPY/run.py --data FOLDER --stored COPY/stored.npz

For `git bisect`, copy this folder out of the repository first: the script imports nothing else of it, and names of
nearkin that old commits have. Exit codes: 1 for a loss, 125 where a call fails (`git bisect` skips the commit), 255
where data or kept values are missing (it stops).
"""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import nearkin as nk

HERE = Path(__file__).parent
DATA = os.environ.get("NEARKIN_DATA") or HERE / "../../../shared/data"
FILES = ("sift_bsds", "cifar10_gist512", "wordnet_minilm", "mnist", "ml100k", "music_triplets")
KS = (1, 10, 100)
BYTES = (8, 16, 32)
ROWS, MORE_ROWS, QUERIES = 8_000, 40_000, 400  # more: of which 4-bit codes take candidates
ERRORS = 2  # standard errors of the mean difference that a loss may have
Values = dict[str, np.ndarray]  # name of a figure: (q,) its value for each query
SETS = {  # metric, rows and queries of a file
    "sift": ("l2", "sift_bsds", lambda f: (f["base"], f["query"])),
    "gist": ("l2", "cifar10_gist512", lambda f: (f["X"][f["test"] == 0], f["X"][f["test"] == 1])),
    "sentences": ("cosine", "wordnet_minilm", lambda f: (f["X"], f["Q"])),
    "mnist": ("l2", "mnist", lambda f: (f["X_train"], f["X_test"])),
}


def vectors(folder: Path, name: str, most: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Rows, queries, their 100 nearest rows (q, 100), and the metric."""
    metric, file, of = SETS[name]
    with np.load(folder / f"{file}.npz") as arrays:
        parts = of(arrays)
    rng = np.random.default_rng(0)
    X, Q = (part[np.sort(rng.permutation(len(part))[:n])] for part, n in zip(parts, (most, QUERIES), strict=True))
    X, Q = X.astype(np.float32), Q.astype(np.float32)
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) if metric == "cosine" else part for part in (X, Q)]
    return X, Q, faiss.knn(unit[1] - unit[0].mean(axis=0), unit[0] - unit[0].mean(axis=0), KS[-1])[1], metric


def found(index: nk.Index, Q: np.ndarray, truth: np.ndarray, ks: tuple[int, ...] = KS) -> Values:
    """The share of the k nearest that a search for k finds, of each query."""
    hits = {k: index.search(Q, k)[1][:, :, None] == truth[:, None, :k] for k in ks}
    return {f"recall@{k}": hit.any(axis=2).mean(axis=1) for k, hit in hits.items()}


def codes(folder: Path, name: str, n_bytes: int) -> Values:
    X, Q, truth, metric = vectors(folder, name)
    return found(nk.Index.build(X, n_bytes, metric=metric), Q, truth)


def many(folder: Path, name: str, quantizer: Any) -> Values:
    X, Q, truth, metric = vectors(folder, name, MORE_ROWS)
    return found(nk.Index.build(X, quantizer, metric=metric), Q, truth)


def hashing(folder: Path, name: str) -> Values:
    X, Q, truth, _ = vectors(folder, name)
    return found(nk.Index.build(X, nk.ITQ(64, random_state=0), metric="hamming"), Q, truth, KS[1:])


def towers(folder: Path) -> Values:
    """Recall@20 of each user of MovieLens, without films that the user has rated before."""
    pairs = nk.read_interactions(folder / "ml100k.npz", min_weight=4)
    parts = nk.data.split_random(pairs, random_state=0)
    model = nk.TwoTower(32, random_state=0).fit(parts.train)
    scores = model.left_embeddings_ @ model.right_embeddings_.T
    scores[parts.train.rows, parts.train.indices] = -np.inf
    wanted = np.zeros(scores.shape, bool)
    wanted[parts.test.rows, parts.test.indices] = True
    top = np.argsort(-scores, axis=1, kind="stable")[:, :20]
    asked = wanted.any(axis=1)
    hits = np.take_along_axis(wanted, top, axis=1).sum(axis=1) / np.minimum(wanted.sum(axis=1), 20).clip(1)
    return {"recall@20": hits[asked]}


def ordinal(folder: Path) -> Values:
    """Whether each held-out triplet of music artists is answered right."""
    with np.load(folder / "music_triplets.npz") as arrays:
        triplets = arrays["triplets"].astype(np.int64)
    triplets = triplets[[len(set(row)) == 3 for row in triplets.tolist()]]
    i, j, k = triplets[::5].T
    Y = nk.OrdinalEmbedding(5, random_state=0).fit(np.delete(triplets, np.s_[::5], axis=0)).embedding_
    near, far = (np.square(Y[i] - Y[other]).sum(axis=1) for other in (j, k))
    return {"right": (near < far).astype(float)}


def cases(folder: Path) -> Iterator[tuple[str, Callable[[], Values]]]:
    for name in SETS:
        for n_bytes in BYTES:
            yield f"codes {name} {n_bytes}", partial(codes, folder, name, n_bytes)
    for name, n_bytes in (("sentences", 24), ("sift", 16)):
        product = nk.ProductQuantizer(n_bytes, max_iter=5, random_state=0)
        yield f"products {name} {n_bytes}", partial(many, folder, name, product)
    for name, n_bytes in (("sentences", 50), ("gist", 98)):
        yield f"axes {name} {n_bytes}", partial(many, folder, name, nk.quantization.AxisQuantizer(n_bytes))
    for name in ("gist", "mnist"):
        yield f"hashing {name}", partial(hashing, folder, name)
    yield "towers", partial(towers, folder)
    yield "ordinal", partial(ordinal, folder)


def lost(now: np.ndarray, kept: np.ndarray) -> tuple[bool, str]:
    """Whether values (q,) are below those kept (q,) by more than two standard errors, paired; and the figures."""
    difference = now - kept
    mean, error = difference.mean(), difference.std(ddof=1) / len(difference) ** 0.5
    return mean < -ERRORS * error, f"{kept.mean():.4f} -> {now.mean():.4f}, {mean:+.4f} +- {error:.4f}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, default=DATA, help="folder of sift_bsds.npz, ...; NEARKIN_DATA")
    options.add_argument("--stored", type=Path, default=HERE / "stored.npz")
    options.add_argument("--store", action="store_true", help="keep the values in place of comparing them")
    options.add_argument("--only", default="", help="beginning of the cases' names")
    given = options.parse_args()
    missing = [str(given.data / f"{name}.npz") for name in FILES if not (given.data / f"{name}.npz").exists()]
    if missing or not (given.store or given.stored.exists()):
        what = f"{missing[0]} is missing" if missing else f"{given.stored} is missing; make guard STORE=1 makes it"
        print(f"guard: {what}. Give the folder of the shared data by --data or NEARKIN_DATA.", file=sys.stderr)
        return 255
    kept = {} if not given.stored.exists() else dict(np.load(given.stored))
    losses, failures = 0, 0
    for name, values in cases(given.data):
        if not name.startswith(given.only):
            continue
        began = time.perf_counter()
        try:
            figures = {f"{name} {figure}": np.round(255 * own) for figure, own in values().items()}
        except Exception:
            traceback.print_exc()
            failures += 1
            continue
        for figure, own in figures.items():
            if given.store:
                kept[figure] = own.astype(np.uint8)
            lower, text = (False, f"{own.mean() / 255:.4f}") if given.store else lost(own / 255, kept[figure] / 255)
            losses += lower
            print(f"{'LOSS' if lower else '    '} {figure}: {text}", flush=True)
        print(f"     {time.perf_counter() - began:.1f} s", flush=True)
    if given.store:
        np.savez_compressed(given.stored, **kept)  # pyright: ignore[reportArgumentType]
    return 1 if losses else 125 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
