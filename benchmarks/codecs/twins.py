"""An index against its codes: the recall that a search loses to comparing every decoded code, and its time.

    python -m benchmarks codecs twins
    python -m benchmarks codecs twins --sets sentences --codecs "axis 50"

Six sets, k = 1, 10 and 100. Codes are decoded, brought to their norms, and compared as float64. CPU seconds of one
thread are of 1,000 queries for ten, next to FAISS's exact search; the first search, which tries fast ones, is apart.
"""

from argparse import Namespace
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, cast

import faiss
import numpy as np

import nearkin as nk
from benchmarks.data import Problem, load
from benchmarks.harness import cpu_seconds
from benchmarks.jobs import Job, Row, command
from nearkin.index.searching import Scan, rows_as_searched
from nearkin.linalg.norms import widened

KS = (1, 10, 100)
SETS = ("sift", "gist", "mnist", "sentences", "vocabulary", "heavy")
ROWS, LEARNED = 40_000, 16_384
MADE: dict[str, Any] = {
    "PQ": lambda n: nk.ProductQuantizer(n, max_iter=5, random_state=0),
    "axis": nk.quantization.AxisQuantizer,
    "4-bit": lambda n: nk.ProductQuantizer(2 * n, 16, max_iter=5, random_state=0),
    "residual": lambda n: nk.quantization.ResidualQuantizer(n, beam_size=1, max_iter=0, random_state=0),
    "lists": lambda n: nk.ProductQuantizer(n, n_lists=128, max_iter=5, random_state=0),
}
CODECS = ("PQ 8", "PQ 16", "PQ 24", "axis 50", "axis 98", "axis 194", "4-bit 16", "residual 8", "lists 16")
problem = cache(partial(load, n_learned=LEARNED, n_searched=ROWS))


def twin(index: nk.Index, Q: np.ndarray) -> np.ndarray:
    """Positions (q, 100) of the nearest of all codes; by lists of those alone that a query visits."""
    scan = Scan(cast(faiss.Index, index.faiss_index), index.norms)
    rows = rows_as_searched(scan, np.arange(len(index)))
    products = widened(Q, rows.shape[1]).astype(np.float64) @ rows.T.astype(np.float64)
    scores = np.square(rows, dtype=np.float64).sum(axis=1) - 2 * products if index.metric == "l2" else -products
    if scan.lists:
        asked = Q if scan.turn is None else scan.turn.apply(Q)
        for away, lists in zip(scores, scan.inner.quantizer.search(asked, scan.inner.nprobe)[1], strict=True):
            away[~np.isin(scan.places[:, 0], lists)] = np.inf
    near = np.argpartition(scores, KS[-1], axis=1)[:, : KS[-1]]
    return np.take_along_axis(near, np.take_along_axis(scores, near, axis=1).argsort(axis=1), axis=1)


def measured(data: Problem, codec: str) -> Row:
    kind, n_bytes = codec.rsplit(" ", 1)
    if int(n_bytes) > data.d:
        return {"note": "more bytes than columns"}
    quantizer = MADE[kind](int(n_bytes)).fit(data.learned)
    index = nk.Index.build(data.searched, quantizer, metric=data.metric)
    first = cpu_seconds(lambda: index.search(data.queries[:1]))[0]
    exact, (_, truth) = cpu_seconds(lambda: faiss.knn(data.queries, data.searched, KS[-1]))
    codes, row = twin(index, data.queries), {"metric": data.metric, "bytes": index.bytes_per_vector}
    for k in KS:
        seconds, (_, ids) = cpu_seconds(partial(index.search, data.queries, k))
        search, alone = ((own[:, :k, None] == truth[:, None, :k]).any(axis=2).mean() for own in (ids, codes))
        row |= {f"codes@{k}": float(alone), f"lost@{k}": float(alone - search), f"seconds@{k}": seconds}
    return row | {"first": first, "exact": exact}


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for name in given.sets[: 1 if given.quick else None]:
        for codec in given.codecs:
            work = partial(measured, problem(name, given.data), codec)
            yield "codecs_twins", Job({"data": name, "codec": codec}, work)


def main() -> None:
    command(__doc__, jobs, {"rows": ROWS, "queries": 1_000}, sets=SETS, codecs=CODECS)


if __name__ == "__main__":
    main()
