"""Every hasher on MNIST: raw pixels, and features of a network that never saw the classes it is judged on.

    python -m benchmarks hashing [--part NAME] [--sets raw network]

Parts: `table`, the rows of SCQ's Table 2 with both goals, labels and exact neighbours, over bits and seeds; `labels`,
fits that know the labels of their rows, and the same without; `scale`, the curves of its Figure 4; `training`, quality
against seconds of learning; `speed`, learning and encoding against the products they cannot do without; `figures`,
drawn from the JSON. Every finished run is written at once, and runs found in the JSON are not repeated: a full run may
be interrupted (`--seconds` stops it in good order), and one process for each set may run at the same time. Methods
learn from `--train-rows` rows of the database.
"""

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import nearkin as nk
from benchmarks.harness import commit
from benchmarks.hashing.figures import collect, draw_bits
from benchmarks.hashing.judge import Judge
from benchmarks.hashing.peers import PEERS, run_peer
from benchmarks.hashing.problems import Features, network_features, raw_pixels
from benchmarks.hashing.rivals import BinaryAutoencoder, KMeansHash, SphericalHashing
from benchmarks.hashing.speed import measure_speed
from benchmarks.options import drawing_parser
from benchmarks.stored import read_json, write_json

CACHE = Path(__file__).parents[1] / ".cache"

METHODS: dict[str, Callable[..., Any]] = {  # name -> (n_bits, random_state) -> hasher
    "random hyperplanes": nk.RandomHyperplanes,
    "random rotation": lambda n, **kw: nk.RandomHyperplanes(n, orthogonal=True, **kw),
    "PCA": nk.PCAHash,
    "spherical": SphericalHashing,
    "k-means": KMeansHash,
    "autoencoder": BinaryAutoencoder,
    "ITQ": nk.ITQ,
    "ITQ, whitening 1/4": lambda n, **kw: nk.ITQ(n, whitening=0.25, **kw),
    "ITQ, whitening 1/2": lambda n, **kw: nk.ITQ(n, whitening=0.5, **kw),
    "OnE": nk.OnE,
    "OnE, stiefel": lambda n, **kw: nk.OnE(n, solver="stiefel", **kw),
    "OgE": nk.OgE,
    "OgE, demo's scale": lambda n, **kw: nk.OgE(n, scale="top-eigenvalue", **kw),
}
LABELLED = ("ITQ", "OnE", "OgE")  # what is fitted with labels too, which choose the scale of OnE and OgE


def run_hasher(hasher: Any, train: np.ndarray, judge: Judge, labels: np.ndarray | None = None) -> dict[str, float]:
    """Fit, encode, judge."""
    start = time.process_time()
    hasher.fit(train, labels)
    fitted = time.process_time() - start
    codes = hasher.encode(judge.features.base)
    row = judge.codes(hasher.encode(judge.features.queries), codes, isinstance(hasher, SphericalHashing))
    row |= {"fit seconds": fitted, "iterations": hasher.n_iter_}
    if hasattr(hasher, "retained_variance"):
        row |= {"loss per bit": hasher.quantization_error(train), "retained": hasher.retained_variance(train)}
    return row


def table_runs(
    judge: Judge, bits: list[int], seeds: list[int], n_train: int
) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Keys and makers of all rows of the table, seed by seed so that an interrupted run is even."""
    f = judge.features
    rows = np.random.default_rng(1).permutation(len(f.base))[:n_train]
    train = f.base[rows]
    for seed in seeds:
        for n_bits in bits:
            for name, make in METHODS.items():
                hasher = make(n_bits, random_state=seed)
                yield f"{f.name}|{name}|{n_bits}|{seed}", lambda h=hasher: run_hasher(h, train, judge)
            for name in PEERS:
                key = f"{f.name}|{name}|{n_bits}|{seed}"
                yield key, lambda n=name, b=n_bits, s=seed: run_peer(n, b, s, train, judge)


def label_runs(judge: Judge, n_train: int) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Fits with and without the labels of the training rows, and FAISS's ITQ."""
    f = judge.features
    rows = np.random.default_rng(1).permutation(len(f.base))[:n_train]
    for seed, n_bits in itertools.product(range(5), (16, 32)):
        for name in LABELLED:
            for how, labels in (("", None), (", with labels", f.base_labels[rows])):
                if labels is None or name != "ITQ":
                    hasher = METHODS[name](n_bits, random_state=seed)
                    job = functools.partial(run_hasher, hasher, f.base[rows], judge, labels)
                    yield f"{f.name}|{name}{how}|{n_bits}|{seed}", job
        yield (
            f"{f.name}|FAISS ITQ|{n_bits}|{seed}",
            functools.partial(run_peer, "FAISS ITQ", n_bits, seed, f.base[rows], judge),
        )


def scale_runs(judge: Judge, n_bits: int, n_train: int) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Figure 4 of SCQ: loss per bit, retained variance and both measures against the scale."""
    f = judge.features
    train = f.base[np.random.default_rng(1).permutation(len(f.base))[:n_train]]
    base_scale = nk.PCAHash(n_bits).fit(train).scale_
    for factor in 2.0 ** np.arange(-2, 4.5, 1.0):
        for name, make in (("OnE", nk.OnE), ("OgE", nk.OgE)):
            hasher = make(n_bits, scale=float(base_scale * factor), random_state=0)
            yield f"{f.name}|{name}|{n_bits}|{factor:.4g}", lambda h=hasher: run_hasher(h, train, judge)


def training_runs(judge: Judge, n_bits: int) -> Iterator[tuple[str, Callable[[], dict]]]:
    """What rows and principal components buy: quality against seconds of learning, PCA included."""
    f = judge.features
    order = np.random.default_rng(1).permutation(len(f.base))
    for n_train in (10_000, len(f.base)):
        train = f.base[order[:n_train]]
        makers: dict[str, Any] = {"ITQ": nk.ITQ(n_bits, random_state=0)}
        for width in (128, 512):
            makers |= {
                f"OgE, {width}": nk.OgE(n_bits, n_components=width, random_state=0),
                f"OnE, {width}": nk.OnE(n_bits, n_components=width, random_state=0),
                f"OnE stiefel, {width}": nk.OnE(n_bits, solver="stiefel", n_components=width, random_state=0),
            }
        makers["OgE, no PCA"] = nk.OgE(n_bits, n_components=None, random_state=0)
        for name, hasher in makers.items():
            yield f"{f.name}|{name}|{n_bits}|{n_train}", lambda h=hasher, X=train: run_hasher(h, X, judge)


class Record:
    """The JSON of results, written after each run."""

    def __init__(self, file: Path, settings: dict[str, Any]) -> None:
        self.file = file
        self.content = read_json(file) if file.exists() else {"settings": settings}
        if self.content["settings"] != settings:
            raise SystemExit(f"{file} has settings {self.content['settings']}, asked are {settings}; remove the file")

    def run(self, part: str, jobs: Iterator[tuple[str, Callable[[], dict]]], deadline: float) -> None:
        """Do the jobs that are not there yet, until the deadline."""
        results = self.content.setdefault(part, {})
        for key, job in jobs:
            if key in results:
                continue
            if time.perf_counter() > deadline:
                raise SystemExit(f"time is up before {part} {key}; run again to go on")
            results[key] = job()
            self.content.setdefault("commits", {})[part] = commit()
            print(key, results[key], flush=True)
            self.write()

    def write(self) -> None:
        """Add to what is in the file, where a process for the other `--sets` may write too."""
        if self.file.exists():
            for part, rows in read_json(self.file).items():
                own = self.content.setdefault(part, rows)
                for key, row in rows.items():
                    own.setdefault(key, row)
        write_json(self.file, self.content)


def main() -> None:
    asked = drawing_parser(__doc__)
    parts = ("table", "labels", "scale", "training", "speed", "figures")
    asked.add_argument("--part", choices=parts, help="one part only; default all")
    asked.add_argument("--sets", nargs="+", choices=("raw", "network"), default=["raw", "network"])
    asked.add_argument("--train-rows", type=int, default=10_000)
    asked.add_argument("--seconds", type=float, default=float("inf"), help="stop starting new runs after so long")
    asked.add_argument("--cache", type=Path, default=CACHE, help="where the network's features are kept")
    options = asked.parse_args()
    deadline = time.perf_counter() + options.seconds
    threads = torch.get_num_threads()
    name = "hashing_quick" if options.quick else "hashing"
    options.out.mkdir(exist_ok=True)
    record = Record(options.out / f"{name}.json", {"train rows": options.train_rows, "threads": threads})
    makers = {"raw": raw_pixels, "network": lambda data: network_features(data, options.cache)}
    sets = [makers[name](options.data) for name in options.sets]
    if options.quick:
        sets = [
            Features(f.name, f.base[:12_000], f.base_labels[:12_000], f.queries[:2000], f.query_labels[:2000])
            for f in sets
        ]
    bits, seeds = ([32], [0]) if options.quick else ([8, 16, 24, 32], [0, 1, 2, 3, 4])
    if options.part in (None, "scale"):
        for features in sets:
            record.run("scale", scale_runs(Judge(features), 32, options.train_rows), deadline)
    if options.part in (None, "labels"):
        for features in sets:
            record.run("labels", label_runs(Judge(features), options.train_rows), deadline)
    if options.part in (None, "training") and not options.quick:
        record.run("training", training_runs(Judge(sets[0]), 32), deadline)
    if options.part in (None, "speed"):
        record.content["speed"] = measure_speed(sets[0].base, quick=options.quick)
        record.write()
    if options.part in (None, "table"):
        judges = [Judge(features) for features in sets]
        for seed in seeds:
            for judge in judges:
                record.run("table", table_runs(judge, bits, [seed], options.train_rows), deadline)
    if record.content.get("table"):
        draw_bits(collect(record.content["table"]), options.figures / f"{name}_bits.svg")


if __name__ == "__main__":
    main()
