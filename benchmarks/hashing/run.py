"""Every hasher on MNIST: raw pixels, and features of a network that never saw the classes it is judged on.

    python -m benchmarks hashing [--parts table labels bits] [--sets raw network gist ...] [--seeds 5]

table: the rows of SCQ's Table 2 with both goals, labels and exact neighbours, over bits and seeds; labels: fits that
know the labels of their rows, and the same without, on GIST, digits and two sets more; bits: fits without labels to
128 bits, on GIST, sentences and SIFT. Methods learn from 10,000 rows of the database.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator
from functools import partial, reduce
from itertools import product
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline, make_pipeline

import nearkin as nk
from benchmarks.drawing import OURS, REST, RIVAL, legend, panels, save, styles
from benchmarks.hashing import problems, rivals
from benchmarks.hashing.judge import Judge
from benchmarks.hashing.problems import Features
from benchmarks.jobs import Job, Row, command
from benchmarks.options import RESULTS
from benchmarks.table import Results

CACHE = Path(__file__).parents[1] / ".cache"
ROWS = 10_000
SETS: dict[str, Callable[[Path], Features]] = {
    "raw": problems.raw_pixels,
    "network": partial(problems.network_features, cache=CACHE),
    **{name: getattr(problems, name) for name in ("gist", "digits", "cancer", "kinds", "sentences", "sift")},
}
METHODS: dict[str, Callable[..., Any]] = {  # name -> (n_bits, random_state) -> hasher
    "random hyperplanes": nk.RandomHyperplanes,
    "random rotation": lambda n, **kw: nk.RandomHyperplanes(n, orthogonal=True, **kw),
    "PCA": nk.PCAHash,
    "spherical": rivals.SphericalHashing,
    "k-means": rivals.KMeansHash,
    "autoencoder": rivals.BinaryAutoencoder,
    "ITQ": nk.ITQ,
    "ITQ, whitening 1/4": lambda n, **kw: nk.ITQ(n, whitening=0.25, **kw),
    "ITQ, whitening 1/2": lambda n, **kw: nk.ITQ(n, whitening=0.5, **kw),
    "OnE": nk.OnE,
    "OnE, stiefel": lambda n, **kw: nk.OnE(n, solver="stiefel", **kw),
    "OgE": nk.OgE,
    "OgE, demo's scale": lambda n, **kw: nk.OgE(n, scale="top-eigenvalue", **kw),
}
PEERS = ("FAISS ITQ", "FAISS RaBitQ")
RABITQ_QUERIES = 500  # its full ranking is by real numbers, one sort per query


def run_peer(name: str, n_bits: int, seed: int, train: np.ndarray, judge: Judge) -> dict[str, float]:
    """FAISS's own ITQ behind its LSH index, or RaBitQ after a random rotation to n_bits dimensions."""
    f = judge.features
    start = time.process_time()
    if name == "FAISS ITQ":
        transform = faiss.ITQTransform(train.shape[1], n_bits, True)
        transform.itq.seed = seed + 1
        transform.train(train)
        fitted = time.process_time() - start
        lsh = faiss.IndexLSH(n_bits, n_bits, False)
        base, queries = (lsh.sa_encode(transform.apply(X)) for X in (f.base, f.queries))
        return {**judge.codes(queries, base), "fit seconds": fitted}
    rotation = faiss.RandomRotationMatrix(train.shape[1], n_bits)
    rotation.init(seed + 1)
    index = faiss.IndexRaBitQ(n_bits, faiss.METRIC_L2)
    centred = [rotation.apply(X - train.mean(axis=0)) for X in (f.base, f.queries[judge.some[:RABITQ_QUERIES]])]
    index.train(centred[0])
    fitted = time.process_time() - start
    index.add(centred[0])
    ids = index.search(centred[1], len(f.base))[1]
    return {**judge.ranking(ids), "fit seconds": fitted}


PARTS: dict[str, tuple[Collection[str], Collection[str], tuple[int, ...], tuple[str, ...]]] = {
    "table": (("raw", "network"), METHODS, (8, 16, 24, 32), PEERS),
    "labels": (("raw", "network", "gist", "digits", "cancer", "kinds"), ("ITQ", "OnE", "OgE"), (16, 32), PEERS[:1]),
    "bits": (("gist", "sentences", "sift"), ("spherical", "ITQ", "OnE", "OgE"), (16, 32, 64, 128), PEERS[:1]),
}  # part -> sets, methods without labels, bits, FAISS's methods


def kernel_features(hasher: Any, X: np.ndarray, seed: int, n: int) -> Any:
    """`hasher` behind n features of a Gaussian kernel, whose width is the mean distance of two vectors."""
    gamma = 0.5 / float(X.var(axis=0).sum())
    return make_pipeline(Nystroem(gamma=gamma, n_components=min(n, len(X)), random_state=seed), hasher)


def measured(hasher: Any, train: np.ndarray, judge: Judge, labels: np.ndarray | None = None) -> Row:
    """Fit, encode, judge."""
    start = time.process_time()
    hasher.fit(train, labels)
    fitted = time.process_time() - start
    *before, encoder = (step for _, step in hasher.steps) if isinstance(hasher, Pipeline) else [hasher]
    parts = judge.features.base, judge.features.queries
    base, queries = (reduce(lambda X, step: step.transform(X), before, part) for part in parts)
    row = judge.codes(encoder.encode(queries), encoder.encode(base), isinstance(hasher, rivals.SphericalHashing))
    return row | {"fit seconds": fitted}


def cells(judge: Judge, part: str, quick: bool, seeds: int) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """The key of every row of a part but for the set, and what measures it."""
    f = judge.features
    rows = np.random.default_rng(1).permutation(len(f.base))[:ROWS]
    train, (_, methods, bits, peers) = f.base[rows], PARTS[part]
    for seed, n_bits in product(range(1 if quick else seeds), (32,) if quick else bits):
        found: dict[str, tuple[Any, np.ndarray | None]] = {}
        for name in methods if n_bits <= train.shape[1] else ():
            found[name] = METHODS[name](n_bits, random_state=seed), None
        if part == "labels":
            y, made, rival = (
                f.base_labels[rows],
                nk.OgE(n_bits, random_state=seed),
                rivals.DiscreteHashing(n_bits, seed),
            )
            found["OgE, with labels"] = made, y
            for n in (1000, 2000) if n_bits == 32 and seed < 3 else ():  # SDH is printed with 1,000
                found[f"SDH on {n:,} kernel features, with labels"] = kernel_features(rival, train, seed, n), y
                found[f"OgE on {n:,} kernel features, with labels"] = kernel_features(made, train, seed, n), y
            if (n_bits, seed) == (32, 0):
                found["class that 15 neighbours vote for"] = rivals.PredictedClass(15), y
        for way, (hasher, y) in found.items():
            yield {"method": way, "bits": n_bits, "seed": seed}, partial(measured, hasher, train, judge, y)
        for name in peers if n_bits <= train.shape[1] else ():
            key = {"method": name, "bits": n_bits, "seed": seed}
            yield key, partial(run_peer, name, n_bits, seed, train, judge)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for name in given.sets:
        f = SETS[name](given.data)
        if given.quick:
            f = Features(name, f.base[:12_000], f.base_labels[:12_000], f.queries[:2000], f.query_labels[:2000])
        judge = Judge(f)
        for part in (part for part in given.parts if name in PARTS[part][0]):
            for key, work in cells(judge, part, given.quick, given.seeds):
                yield f"hashing_{part}", Job({"set": name, **key}, work)


SHOWN = {"OgE": OURS, "OnE": OURS, "FAISS ITQ": RIVAL, "spherical": REST, "PCA": REST, "random hyperplanes": REST}
TITLES = {"raw": "MNIST pixels", "network": "network features, unseen classes"}
MEASURES = {"map": "mAP of labels, %", "neighbour map": "mAP of 100 neighbours, %"}


def draw_bits(rows: list[dict[str, Any]]) -> None:
    """Both measures against the number of bits: ours, FAISS's ITQ and three others; bands from least to most."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure, axes = panels(len(sets), 2, 5.2, 3.6)
    for line, features in zip(axes, sets, strict=True):
        for axis, (measure, label) in zip(line, MEASURES.items(), strict=True):
            for method, style in styles(SHOWN).items():
                own = [row for row in rows if (row["set"], row["method"]) == (features, method)]
                bits = sorted({row["bits"] for row in own})
                values = [[row[measure] for row in own if row["bits"] == b] for b in bits]
                axis.plot(bits, [np.mean(seeds) for seeds in values], **style)
                low, high = ([limit(seeds) for seeds in values] for limit in (min, max))
                axis.fill_between(bits, low, high, alpha=0.2, color=style["color"])
            axis.set(title=TITLES[features], xlabel="bits", ylabel=label, xticks=bits)
    legend(axes[0, 1], loc="upper left")
    save(figure, "hashing_bits")


def main() -> None:
    command(__doc__, jobs, {"train rows": ROWS}, parts=tuple(PARTS), sets=tuple(SETS), seeds=5)
    found = Results(RESULTS).read("hashing_table")
    if found:
        draw_bits(found)
