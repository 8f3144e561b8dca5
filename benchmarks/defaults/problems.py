"""Small problems that show what a tuned number is worth: one figure in points of a fit by default settings.

Higher is better. Each runs in seconds on one thread; the figures of docs/benchmarks.md come from larger ones.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import nearkin as nk
from benchmarks.data import NEIGHBOURS, load, other_queries
from benchmarks.engines.run import searched
from benchmarks.ordinal.problems import synthetic
from benchmarks.ordinal.questions import active, truths
from nearkin import Rotation
from nearkin._exact import nearest
from nearkin.metrics import ranking_metrics, recall_k_at_k, triplet_error
from nearkin.quantization import IndexingLayer, ResidualQuantizer, ScalarQuantizer, best

_LEARNED, _SEARCHED = 8_192, 10_000
_LEFTS, _RIGHTS = 3_000, 4_000  # of Gowalla: the first people of 29,858, the most visited places of 40,981


class Problem(NamedTuple):
    """`run(data, seed)` is the figure, in points of `unit`; `seeds`: how many runs are averaged."""

    unit: str
    run: Callable[[Path, int], float]
    seeds: int = 2


@cache
def _rows(name: str, data: Path) -> Any:
    return load(name, data, None if name == "vocabulary" else _LEARNED, None if name == "vocabulary" else _SEARCHED)


def codes(name: str, make: Callable[[int], Any], data: Path, seed: int, metric: str = "") -> float:
    """Recall 10@10 of an index of codes; `make(seed)` is a quantizer, or learns one from rows (n, d).

    `metric`: "ip" for rows of one length, whose neighbours are the same.
    """
    problem, made = _rows(name, data), make(seed)
    learned = problem.learned
    quantizer, norms = made.fit(learned) if hasattr(made, "fit") else made(learned), None
    index = nk.Index.build(problem.searched, quantizer, metric=metric or problem.metric, norms=norms)
    return 100 * recall_k_at_k(index.search(problem.queries, NEIGHBOURS)[1], problem.truth, NEIGHBOURS)


def streamed(name: str, n_bytes: int, data: Path, seed: int) -> float:
    """The same of product codes that see 512 rows at a time."""
    problem, quantizer = _rows(name, data), nk.ProductQuantizer(n_bytes, random_state=seed)
    for rows in np.array_split(problem.learned, 16):
        quantizer.partial_fit(rows)
    return codes(name, lambda _: lambda rows: quantizer, data, seed)


def with_far_rows(name: str, n_bytes: int, data: Path, seed: int) -> float:
    """The same of product codes for which 32 rows that are learned from are ten thousand times as long."""

    def learn(X: np.ndarray) -> Any:
        X = np.concatenate([X[:32] * np.float32(1e4), X[32:]])
        return nk.ProductQuantizer(n_bytes, random_state=seed).fit(X)

    return codes(name, lambda _: learn, data, seed)


def queried(name: str, n_bytes: int, data: Path, seed: int) -> float:
    """The same of product codes whose starts are compared by given queries."""

    def learn(X: np.ndarray) -> Any:
        return nk.ProductQuantizer(n_bytes, random_state=seed).fit(X, queries=other_queries(name, data))

    return codes(name, lambda _: learn, data, seed)


def known_rows(name: str, data: Path, seed: int) -> float:
    """The same of residual codes of 8 bytes for an index of the rows that they are learned from."""
    X, Q = (part[:_LEARNED] for part in (_rows(name, data).learned, _rows(name, data).queries))
    index = nk.Index.build(X, ResidualQuantizer(8, known=True, random_state=seed))
    return 100 * recall_k_at_k(index.search(Q, NEIGHBOURS)[1], nearest(X, Q, NEIGHBOURS)[1], NEIGHBOURS)


def chosen(n_bytes: int, seed: int) -> Callable[[np.ndarray], Any]:
    def learn(X: np.ndarray) -> Any:
        return best(X, n_bytes, n_vectors=100 * len(X), random_state=seed).quantizer

    return learn


def turned(name: str, data: Path, seed: int) -> float:
    """Recall 10@10 of signs of rotated rows by FAISS's binary index."""
    problem = _rows(name, data)
    rotation = Rotation("sign", center=True, random_state=seed)
    rotation.fit(problem.learned, queries=other_queries(name, data))
    found, _ = searched("FAISS binary", rotation.transform(problem.searched), rotation.transform(problem.queries), data)
    return 100 * recall_k_at_k(found, problem.truth, NEIGHBOURS)


@cache
def _pairs(name: str, data: Path, seed: int) -> Any:
    if name.startswith("planted"):
        wide = name == "planted, wide"
        made = nk.data.planted_interactions(600, 400 if wide else 200, rank=16 if wide else 8, random_state=seed)
        return nk.data.split_random(made.interactions, random_state=seed)
    if name == "ml100k":
        return nk.data.split_random(nk.read_interactions(data / "ml100k.npz", min_weight=4), random_state=seed)
    with np.load(data / "gowalla.npz") as z:
        visited = np.argsort(-np.bincount(z["item"]), kind="stable")[:_RIGHTS]
        some = (z["user"] < _LEFTS) & (z["split"] < 2) & np.isin(z["item"], visited)  # the test part stays unseen
        pairs = nk.Interactions.from_pairs(z["user"][some], z["item"][some])
    return nk.data.split_random(pairs, random_state=seed)


def recommended(name: str, settings: dict[str, Any], data: Path, seed: int) -> float:
    """Recall@20 of pairs held out."""
    parts = _pairs(name, data, seed)
    model = nk.TwoTower(**{"n_components": 64, "random_state": seed} | settings)
    return _recall(model.fit(parts.train, validation=parts.valid), parts)


def _recall(model: nk.TwoTower, parts: Any) -> float:
    P, Q = model.left_embeddings_, model.right_embeddings_
    found = ranking_metrics(P, Q, parts.test, seen=parts.train, k=20, metrics=("recall",))
    return 100 * found["recall@20"]


def joined(name: str, data: Path, seed: int) -> float:
    """Recall@20 through an index of 8 bytes that is trained with the towers."""
    return recommended(name, {"loss": "all-pairs", "index": IndexingLayer(64, 8, random_state=seed)}, data, seed)


def updated(name: str, data: Path, seed: int) -> float:
    """Recall@20 after `partial_fit` of a tenth of the pairs."""
    parts = _pairs(name, data, seed)
    late = np.random.default_rng(seed).random(len(parts.train)) < 0.1
    model = nk.TwoTower(64, loss="all-pairs", random_state=seed).fit(parts.train.select(~late))
    return _recall(model.partial_fit(parts.train.select(late)), parts)


def ordered(noise: float, settings: dict[str, Any], p: int, data: Path, seed: int) -> float:
    """Share of 10,000 held-out comparisons that an embedding of 100 points orders right; `p` dimensions are true."""
    del data
    train, test = synthetic(100, 5_000, seed, p=p, noise=noise)
    model = nk.OrdinalEmbedding(**{"n_components": p, "random_state": seed} | settings)
    return 100 - 100 * triplet_error(model.fit(train).embedding_, test)


def questioned(name: str, data: Path, seed: int) -> float:
    """The same of an embedding after 14 answers an object, a part of them wrong, to questions it chose."""
    truth = next(truth for truth in truths(data, seed) if truth.name == name)
    return 100 - 100 * active(truth, "t-ste", "next_queries", seed, last=14)["14"]


_RECALL, _RIGHT, _PAIRS = "recall 10@10", "comparisons right", "recall@20"


def _codes(name: str, make: Callable[..., Any], *arguments: Any, metric: str = "", **settings: Any) -> Problem:
    def made(seed: int) -> Any:
        return make(*arguments, random_state=seed, **settings)

    return Problem(_RECALL, partial(codes, name, made, metric=metric))


WAYS: tuple[tuple[str, Callable[..., float], dict[str, Any]], ...] = (
    ("default", recommended, {}),
    ("softmax", recommended, {"loss": "cosine-softmax"}),
    ("all pairs", recommended, {"loss": "all-pairs"}),
    ("batches", recommended, {"loss": "in-batch-softmax", "solver": "adam"}),
    ("Gauss-Newton", recommended, {"loss": "all-pairs", "solver": "gauss-newton"}),
)
PROBLEMS = {
    "product, SIFT, 8 bytes": _codes("sift", nk.ProductQuantizer, 8),
    "product, GIST, 16 bytes": _codes("gist", nk.ProductQuantizer, 16),
    "product, MNIST, 16 bytes": _codes("mnist", nk.ProductQuantizer, 16),
    "product by batches, SIFT, 8 bytes": Problem(_RECALL, partial(streamed, "sift", 8)),
    "product by batches, GIST, 16 bytes": Problem(_RECALL, partial(streamed, "gist", 16)),
    "product with far rows, SIFT, 8 bytes": Problem(_RECALL, partial(with_far_rows, "sift", 8)),
    "product with far rows, GIST, 16 bytes": Problem(_RECALL, partial(with_far_rows, "gist", 16)),
    "product with queries, sentences, 24 bytes": Problem(_RECALL, partial(queried, "sentences", 24)),
    "product with queries, GIST, 16 bytes": Problem(_RECALL, partial(queried, "gist", 16)),
    "scalars of 4 bits, sentences": Problem(_RECALL, partial(codes, "sentences", lambda _: ScalarQuantizer(4)), 1),
    "scalars of 4 bits, GIST": Problem(_RECALL, partial(codes, "gist", lambda _: ScalarQuantizer(4)), 1),
    "residual, SIFT, 8 bytes": _codes("sift", ResidualQuantizer, 8),
    "residual, GIST, 8 bytes": _codes("gist", ResidualQuantizer, 8),
    "known rows, word vectors, 8 bytes": Problem(_RECALL, partial(known_rows, "vocabulary"), 1),
    "known rows, GIST, 8 bytes": Problem(_RECALL, partial(known_rows, "gist"), 1),
    "best, SIFT, 8 bytes": Problem(_RECALL, partial(codes, "sift", partial(chosen, 8)), 1),
    "best, GIST, 8 bytes": Problem(_RECALL, partial(codes, "gist", partial(chosen, 8)), 1),
    "signs, sentences": Problem(_RECALL, partial(turned, "sentences"), 1),
    "signs, SIFT": Problem(_RECALL, partial(turned, "sift")),
    "by inner product, SIFT, 8 bytes": _codes("sift", nk.ProductQuantizer, 8, metric="ip"),
    "by inner product, sentences, 24 bytes": _codes("sentences", nk.ProductQuantizer, 24, metric="ip"),
    "in lists, SIFT, 8 bytes": _codes("sift", nk.ProductQuantizer, 8, n_lists=64),
    "in lists, GIST, 16 bytes": _codes("gist", nk.ProductQuantizer, 16, n_lists=64),
    **{
        f"{what}, {where}": Problem(_PAIRS, partial(run, name, settings), seeds)
        for what, run, settings in WAYS
        for where, name, seeds in (
            ("MovieLens", "ml100k", 2),
            ("Gowalla, a part", "gowalla", 1),
            ("planted features", "planted", 2),
            ("wide planted features", "planted, wide", 2),
        )
    },
    "updates, MovieLens": Problem(_PAIRS, partial(updated, "ml100k")),
    "updates, Gowalla, a part": Problem(_PAIRS, partial(updated, "gowalla")),
    "joint index, MovieLens": Problem(_PAIRS, partial(joined, "ml100k")),
    "joint index, Gowalla, a part": Problem(_PAIRS, partial(joined, "gowalla"), 1),
    **{
        f"{what}{', a tenth wrong' * bool(noise)}": Problem(_RIGHT, partial(ordered, noise, settings, p), 3)
        for what, settings, p in (
            ("STE", {"loss": "ste"}, 10),
            ("STE in the plane", {"loss": "ste"}, 2),
            ("STE by SVRG-SBB", {"loss": "ste", "solver": "svrg-sbb"}, 10),
            ("STE, dimension chosen", {"loss": "ste", "n_components": "auto"}, 4),
        )
        for noise in (0.0, 0.1)
    },
    "questions, plane": Problem(_RIGHT, partial(questioned, "plane"), 5),
    "questions, clusters": Problem(_RIGHT, partial(questioned, "clusters"), 5),
}
