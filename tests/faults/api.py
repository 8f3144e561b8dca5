"""Public functions and estimators with one hostile argument: an answer, or a ValueError or TypeError with a text."""

import random
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from nearkin import linalg, metrics
from nearkin.orthogonal import greedy_matching, max_weight_matching, two_opt_matching
from tests.faults.child import Fault

Call = tuple[str, Callable[..., Any], tuple[Any, ...]]
HOSTILE: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        1,
        -1,
        2,
        10**7,
        2**63,
        10**400,
        -0.0,
        0.5,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "x",
        "l2",
        b"x",
    ),
    *([], [1], [[1], [2, 3]], {}, {"a": 1}, object(), (), set(), lambda: None, range(3), 1j),
    *(np.zeros(0), np.zeros((0, 4)), np.zeros((4, 0)), np.zeros((2, 3, 4)), np.array(3.0), np.array(["a", "b"])),
    *(np.full((6, 4), np.nan), np.full((6, 4), np.inf), np.full((6, 4), 1e300), np.full((6, 4), 3e38, np.float32)),
    *(np.array([None, 1], object), np.ones((6, 4), complex), np.ones((6, 4), bool), np.ones((6, 4), np.uint8)),
    *(np.full((6, 4), -(2**62)), np.full((6, 2), 10**7), np.ones((12, 8), np.float16)[::2, ::2], np.eye(4)[:, ::-1]),
    *(np.ma.masked_array([1.0, 2]), np.zeros(3, "M8[s]"), np.zeros(2, [("a", int)])),
)


def case(number: int, seed: int, folder: Path) -> str:
    """One call with one argument, or two, replaced."""
    rng = random.Random(seed * 1_000_003 + number)
    name, function, arguments = rng.choice(calls())
    given = list(arguments)
    for _ in range(rng.choice((1, 1, 2))):
        given[rng.randrange(len(given))] = rng.choice(HOSTILE)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            function(*given)
        except (ValueError, TypeError, FileNotFoundError, MemoryError) as error:
            if not str(error):
                raise Fault(f"{name}{_shown(given)}: an error without a text") from error
            raise ValueError(f"{name}: {error}") from error
        except Exception as error:
            raise Fault(f"{name}{_shown(given)}: {type(error).__name__}: {error}") from error
    return "other"


def _shown(given: list[Any]) -> str:
    parts = [f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else repr(value)[:30] for value in given]
    return f"({', '.join(parts)})"


@cache
def calls() -> list[Call]:
    """Name, function, good arguments."""
    X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    index, bits = nk.Index.build(X, keep_vectors=True), nk.RandomHyperplanes(8, random_state=0).fit(X)
    coder = nk.ProductQuantizer(2, 8, rotation=None, max_iter=1, random_state=0).fit(X)
    codes, ids = bits.encode(X), np.tile(np.arange(6), (6, 1))
    W = np.abs(X[:4] @ X[:4].T)
    return [
        ("linalg.rotate_rows", linalg.rotate_rows, (np.eye(4), [[0, 1]], [0.1])),
        ("linalg.rotate_columns", linalg.rotate_columns, (np.eye(4), [[0, 1]], [0.1])),
        ("metrics.recall", metrics.recall, (ids, ids)),
        ("metrics.label_relevance", metrics.label_relevance, (ids, np.arange(6))),
        ("greedy_matching", greedy_matching, (W,)),
        ("two_opt_matching", two_opt_matching, (W,)),
        ("max_weight_matching", max_weight_matching, (W,)),
        ("metrics.recall_k_at_k", metrics.recall_k_at_k, (ids, ids, 3)),
        ("metrics.triplet_error", metrics.triplet_error, (X, ids[:, :3])),
        ("metrics.hamming_distances", metrics.hamming_distances, (codes, codes)),
        ("Index.build", lambda X, ids, metric: nk.Index.build(X, ids=ids, metric=metric), (X, list(range(40)), "l2")),
        ("Index.search", index.search, (X[:3], 3)),
        ("Index.search oversample", lambda Q, k, o: index.search(Q, k, oversample=o), (X[:3], 3, 2)),
        ("Index.remove", lambda ids: nk.Index.build(X, ids=range(40)).remove(ids), ([3, 4],)),
        ("Index.add", lambda Y, ids: nk.Index.build(X, ids=range(40)).add(Y, ids), (X[:2], [50, 51])),
        ("ProductQuantizer", _fit(nk.ProductQuantizer, "n_subspaces", "n_centroids", "max_iter"), (X, 2, 4, 1)),
        ("ProductQuantizer.encode", coder.encode, (X,)),
        ("ProductQuantizer.decode", coder.decode, (coder.encode(X),)),
        ("ITQ", _fit(nk.ITQ, "n_bits", "max_iter"), (X, 4, 2)),
        ("RandomHyperplanes.encode", bits.encode, (X,)),
        ("Interactions.from_pairs", nk.Interactions.from_pairs, (list("aab"), list("xyx"))),
        ("Comparisons", nk.Comparisons, (np.array([[0, 1, 2]]), np.arange(3))),
        ("OrdinalEmbedding", _ordinal, (np.array([[0, 1, 2], [2, 0, 1]] * 3), 1, 2)),
        ("read_vectors", nk.read_vectors, ("missing.npy",)),
        ("Index.load", nk.Index.load, ("missing",)),
    ]


def _fit(cls: Any, *names: str) -> Callable[..., Any]:
    return lambda X, *values: cls(**dict(zip(names, values, strict=True))).fit(X)


def _ordinal(rows: Any, p: Any, steps: Any) -> Any:
    return nk.OrdinalEmbedding(p, max_iter=min(steps, 5) if isinstance(steps, int) else steps, n_init=1).fit(rows)
