"""Our codecs at a size, as FAISS indexes whose rows are coded by our own `encode`."""

from collections.abc import Iterator

import numpy as np

from benchmarks.codecs.peers import Made, Make
from benchmarks.codecs.problems import Problem
from nearkin import ProductQuantizer
from nearkin.contracts import VectorCodes
from nearkin.quantization import best

_OTHERS = 10**9  # rows of an index that holds hardly any of those learned from, as the problems search others


def codecs(n_bytes: int, problem: Problem) -> Iterator[tuple[str, Make]]:
    """Product codes with every default, and what `nk.quantization.best` gives a user; its training holds the race."""
    yield "ours, product", lambda X: _made("ours, product", ProductQuantizer(n_bytes, random_state=0).fit(X), problem)
    n_rows = None if np.may_share_memory(problem.learned, problem.searched) else _OTHERS

    def raced(X: np.ndarray) -> Made:
        found = best(X, n_bytes, n_rows=n_rows, metric=problem.metric, random_state=0)
        yield from _made(f"ours, best: {found.table[0]['name']}", found.quantizer, problem)

    yield "ours, best", raced


def _made(name: str, quantizer: VectorCodes, problem: Problem) -> Made:
    index = quantizer.to_faiss("l2" if problem.metric == "l2" else "ip")
    yield name, index, lambda rows: quantizer.add_to(index, rows)
