"""Our codecs at a size, as a user calls them: fitted, then put into an `nk.Index`."""

from collections.abc import Callable

import numpy as np

from benchmarks.data import Problem
from nearkin import ProductQuantizer
from nearkin.contracts import VectorCodes
from nearkin.linalg.norms import Norms
from nearkin.quantization import best
from nearkin.quantization.plain import PlainCode
from nearkin.quantization.sized import fitted_code

_OTHERS = 10**9  # rows of an index that holds hardly any of those learned from, as the problems search others
_SECONDS = 60.0  # of `nearkin compress`, beyond what its first code takes
Fit = Callable[[np.ndarray], tuple[str, VectorCodes, Norms | None]]  # rows (n, d) to the codec's name, it, its norms


def codecs(n_bytes: int, problem: Problem) -> dict[str, Fit]:
    """Every call with its defaults; the training of `best` includes all of its candidates."""
    n_vectors = None if np.may_share_memory(problem.learned, problem.searched) else _OTHERS
    settings = {"n_vectors": n_vectors, "metric": problem.metric, "random_state": 0}

    def chosen(name: str, X: np.ndarray, **options: object) -> tuple[str, VectorCodes, Norms | None]:
        found = best(X, n_bytes, **settings | options)  # pyright: ignore[reportArgumentType]
        return f"{name}: {found.trials[0]['candidate']}", found.quantizer, found.norms

    return {
        "ours, ProductQuantizer": lambda X: (
            "ours, ProductQuantizer",
            ProductQuantizer(n_bytes, random_state=0).fit(X),
            None,
        ),
        "ours, Index.build": lambda X: (
            "ours, Index.build",
            *fitted_code(PlainCode(n_bytes, metric=problem.metric, random_state=0), X),
        ),
        "ours, compress": lambda X: chosen("ours, compress", X, seconds=_SECONDS, n_encoded=len(problem.searched)),
        "ours, best": lambda X: chosen("ours, best", X),
    }
