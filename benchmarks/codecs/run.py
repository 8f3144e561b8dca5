"""Which code keeps most neighbours at which size: ours and FAISS's and ScaNN's, with the cost of each, in one run.

    python -m benchmarks codecs --quick
    python -m benchmarks codecs --sets sift mnist --bits 0.5 1 --who ours

Recall 10@10 by codes alone. Codes are learned from 16,384 rows (8,192 of wide sets) and judged on other rows by 1,000
queries: SIFT and GIST descriptors, MNIST's images, glosses asked for by sentences (unlike the rows), and word vectors
made here, which are searched as they were learned from. `bits` a column of total bytes, rounded to a number of bytes
that divides the columns. Ours are plain calls, and their recall is that of `nk.Index`. FAISS's codecs are tuned: OPQ
from both starts, residual codes with beams of 5 and 32, at a bit a column and more scalar codes and RaBitQ. `at_length`
is the recall of FAISS's codes if decoded rows are set back to their length, as `nk.Index` does with ours: rows of
length 1 without a byte, others (`--who length`) by the last byte of the code, which holds their length about the mean.
ScaNN can only learn from the rows that it searches. What takes more than `--limit` seconds of one thread is a row that
says so. Results are one JSON a set; what is run again replaces its rows.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import faiss
import numpy as np

import nearkin as nk
from benchmarks.codecs import peers
from benchmarks.codecs.limits import within
from benchmarks.data import NEIGHBOURS, QUERIES, SETS, Problem, load
from benchmarks.harness import cpu_seconds
from benchmarks.jobs import Job, command
from benchmarks.options import peer_python
from nearkin import ProductQuantizer
from nearkin._exact import nearest
from nearkin._faiss import compared, innermost
from nearkin.contracts import VectorCodes
from nearkin.linalg.norms import Norms, widened
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import best

BITS = (0.25, 0.5, 1.0, 2.0)
WHO = ("faiss", "length", "scann", "ours")
_TIMED = 100  # queries whose search is timed


_OTHERS = 10**9  # rows of an index that holds hardly any of those learned from, as the problems search others
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
        "ours, Index.build": lambda X: chosen("ours, Index.build", X, n_encoded=len(problem.searched)),
        "ours, compress": lambda X: chosen("ours, compress", X, n_encoded=len(problem.searched)),
        "ours, best": lambda X: chosen("ours, best", X, seconds=np.inf),
    }


def size(d: int, bits: float) -> int:
    """The number of bytes nearest to `bits` a column that divides d."""
    return min((m for m in range(1, d + 1) if d % m == 0), key=lambda m: abs(m - bits * d / 8))


def judge_ours(fit: Fit, problem: Problem) -> Iterator[dict[str, Any]]:
    """Fit, build the index, search: recall of the answers, and seconds of the processor."""
    start = time.process_time()
    name, quantizer, norms = fit(problem.learned)
    trained = time.process_time() - start
    nk.Index.build(problem.searched[:300], quantizer, metric=problem.metric).search(problem.queries[:1], 1)  # compiles
    start = time.process_time()
    index = nk.Index.build(problem.searched, quantizer, metric=problem.metric, norms=norms)
    adding = time.process_time() - start
    recalls = _recalls(index.search(problem.queries, NEIGHBOURS)[1], problem)
    searching, _ = cpu_seconds(lambda: index.search(problem.queries[:_TIMED], NEIGHBOURS))
    error = _error(problem.searched, quantizer.decode(quantizer.encode(problem.searched)))
    yield {
        "codec": name, "bytes": index.bytes_per_vector, "train_seconds": trained, **recalls, "distortion": error,
        "encode_microseconds": 1e6 * adding / len(problem.searched), "search_microseconds": 1e6 * searching / _TIMED,
        "with_codebooks": index.bytes_per_vector + learned_bytes(quantizer) / len(problem.searched),
    }  # fmt: skip


def judge(make: peers.Make, problem: Problem) -> Iterator[dict[str, Any]]:
    """Train, add, search: recall, distortion, and seconds of the processor."""
    start, X = time.process_time(), problem.searched
    for name, index, add in make(problem.learned):
        trained = time.process_time() - start
        adding, _ = cpu_seconds(lambda add=add: add(X))
        searching, _ = cpu_seconds(lambda index=index: index.search(problem.queries[:_TIMED], NEIGHBOURS))
        row = {"codec": name, "bytes": index.sa_code_size(), "train_seconds": trained}
        yield row | _kept(index, problem) | {
            "encode_microseconds": 1e6 * adding / len(X), "search_microseconds": 1e6 * searching / _TIMED,
            "with_codebooks": faiss.serialize_index(index).nbytes / len(X),
        }  # fmt: skip
        index.reset()
        start = time.process_time() - trained  # a wider beam trains nothing


def judge_at_length(make: peers.Make, problem: Problem) -> Iterator[dict[str, Any]]:
    """Train, add, and compare decoded rows at the length about the mean that a byte behind each code holds."""
    start = time.process_time()
    norms = Norms.learned(problem.learned)
    for name, index, _ in make(problem.learned):
        trained = time.process_time() - start
        wide = np.pad(problem.searched, ((0, 0), (0, index.d - problem.d)))
        adding, _ = cpu_seconds(lambda index=index, wide=wide: index.add(wide))
        rows = norms.restored(index.reconstruct_n(0, len(wide))[:, : problem.d], problem.searched)
        found = nearest(rows, widened(problem.queries, rows.shape[1]), NEIGHBOURS)[1]
        yield {
            "codec": f"{name}, byte of length", "bytes": index.sa_code_size() + 1, "train_seconds": trained,
            **_recalls(found, problem, "at_length"), "encode_microseconds": 1e6 * adding / len(wide),
            "with_codebooks": faiss.serialize_index(index).nbytes / len(wide) + 1,
        }  # fmt: skip
        index.reset()
        start = time.process_time() - trained


def _kept(index: faiss.Index, problem: Problem) -> dict[str, Any]:
    """Neighbours kept: RaBitQ by its own estimate of distances, all others by rows decoded once, which is the same.

    Of rows of length 1 the nearest are those of the largest inner products; codes are searched by either, and those
    of FAISS by the one that keeps more; also at length 1.
    """
    if "RaBitQ" in type(innermost(index)).__name__:
        return _recalls(index.search(problem.queries, NEIGHBOURS)[1], problem)
    unit, decoded = problem.metric == "cosine", index.reconstruct_n(0, len(problem.searched))
    metrics = ("l2", "ip") if unit else ("l2",)
    kept = [_recalls(nearest(*compared(index, problem.queries), NEIGHBOURS, by)[1], problem) for by in metrics]
    record = max(kept, key=lambda row: row["recall"]) | {"distortion": _error(problem.searched, decoded)}
    if unit:
        restored = _recalls(nearest(unit_rows(decoded), problem.queries, NEIGHBOURS, "ip")[1], problem, "at_length")
        record |= restored if restored["at_length"] > record["recall"] else {"at_length": restored["at_length"]}
    return record


def _recalls(found: np.ndarray, problem: Problem, name: str = "recall") -> dict[str, Any]:
    """Of results (q, 10): recall@10, and how often the nearest row is the first ("1-recall@1")."""
    return {name: recall_k_at_k(found, problem.truth, NEIGHBOURS), "first": recall_k_at_k(found, problem.truth, 1)}


def learned_bytes(quantizer: VectorCodes) -> int:
    """Bytes of all that a quantizer has learned."""
    return sum(array.nbytes for array in vars(quantizer).values() if isinstance(array, np.ndarray))


def _error(X: np.ndarray, decoded: np.ndarray) -> float:
    """The mean squared distance of rows (n, d) from their codes."""
    return float(np.square(X - decoded[:, : X.shape[1]]).sum(axis=1, dtype=np.float64).mean())


def made(problem: Problem, n_bytes: int, who: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The codecs of one set at one size, and what measures each."""
    if "ours" in who:
        for name, fit in codecs(n_bytes, problem).items():
            yield name, partial(judge_ours, fit, problem)
    if "faiss" in who:
        for name, make in peers.faiss_codecs(problem.d, n_bytes):
            yield name, partial(judge, make, problem)
    if "length" in who and problem.metric == "l2":
        for name, make in peers.faiss_sums(n_bytes):
            yield f"{name}, byte of length", partial(judge_at_length, make, problem)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for name in ("sift",) if given.quick else given.sets:
        problem = load(name, given.data)
        for bits in (0.25,) if given.quick else given.bits:
            for codec, work in made(problem, size(problem.d, bits), given.who):
                if codec.startswith(given.codecs):
                    key = {"data": name, "bits": bits, "asked": codec}
                    yield f"codecs_{name}", Job(key, partial(within, given.limit, work))
            columns = 4 / bits  # of a 4-bit code
            if "scann" in given.who and columns == round(columns) and problem.d % columns == 0:
                work = partial(peers.scann, peer_python(given.peers), problem, round(columns))
                yield f"codecs_{name}", Job({"data": name, "bits": bits, "asked": "ScaNN"}, work)


def main() -> None:
    settings = {"queries": QUERIES, "neighbours": NEIGHBOURS}
    command(__doc__, jobs, settings, sets=SETS, bits=BITS, who=WHO, codecs="", limit=300)
