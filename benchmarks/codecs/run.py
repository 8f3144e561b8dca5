"""Which code keeps most neighbours at which size: ours beside FAISS's and ScaNN's, with the cost of each.

    python -m benchmarks codecs --quick
    python -m benchmarks codecs --sets sift mnist --bits 0.5 1 --who ours

Recall 10@10 by codes alone. Codes are learned from 16,384 rows and judged on 20,000 others by 1,000 queries: SIFT
descriptors, MNIST's images, sentences against glosses (unlike the rows), and word vectors made here, which are searched
as they were learned from. `bits` a column of total bytes, rounded to
a number of bytes that divides the columns. FAISS's codecs are tuned: OPQ from both starts, residual codes with beams
from 1 to 32, scalar codes and RaBitQ rotated. RaBitQ's own sizes are rows of their own, ours beside them. ScaNN can
only learn from the rows that it searches. What takes more than `--limit` seconds of one thread is a row that says so.
Results are one JSON a set; what is run again replaces its rows.
"""

import time
from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np

from benchmarks.codecs import ours, peers
from benchmarks.codecs.limits import within
from benchmarks.codecs.problems import NEIGHBOURS, QUERIES, SETS, Problem, load
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import RESULTS, parser, peer_python
from benchmarks.table import Results
from nearkin._faiss import nearest_codes
from nearkin.index.faiss_index import innermost
from nearkin.metrics import recall_k_at_k

BITS = (0.25, 0.5, 1.0, 2.0, 4.0)
WHO = ("faiss", "scann", "ours")
_TIMED = 100  # queries by which the speed of search is told


def size(d: int, bits: float) -> int:
    """The number of bytes nearest to `bits` a column that divides d."""
    return min((m for m in range(1, d + 1) if d % m == 0), key=lambda m: abs(m - bits * d / 8))


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
        }  # fmt: skip
        index.reset()
        start = time.process_time() - trained  # a wider beam trains nothing


def _kept(index: faiss.Index, problem: Problem) -> dict[str, Any]:
    """Neighbours kept: RaBitQ by its own estimate of distances, all others by rows decoded once, which is the same.

    Of rows of length 1 the nearest are those of the largest inner products; codes are searched by either, and those
    of FAISS by the one that keeps more.
    """
    if "RaBitQ" in type(innermost(index)).__name__:
        found = index.search(problem.queries, NEIGHBOURS)[1]
        return {"recall": recall_k_at_k(found, problem.truth, NEIGHBOURS)}
    kept = {}
    for metric in ("l2", "ip") if problem.metric == "cosine" else ("l2",):
        found = nearest_codes(index, problem.queries, NEIGHBOURS, metric)
        kept[metric] = recall_k_at_k(found, problem.truth, NEIGHBOURS)
    decoded = index.reconstruct_n(0, len(problem.searched))
    distortion = float(np.square(problem.searched - decoded).sum(axis=1, dtype=np.float64).mean())
    return {"recall": max(kept.values()), "distortion": distortion} | ({"recalls": kept} if len(kept) > 1 else {})


def measured(problem: Problem, bits: float, given: Any) -> Iterator[dict[str, Any]]:
    """The rows of one set at one size."""
    d, n_bytes = problem.d, size(problem.d, bits)
    made: list[tuple[str, peers.Make]] = []
    if "faiss" in given.who:
        made += peers.faiss_codecs(d, n_bytes)
    if "ours" in given.who:
        made += ours.codecs(n_bytes, problem)
    for name, make in made:
        if given.codecs and not name.startswith(tuple(given.codecs)):
            continue
        for row in within(given.limit, lambda make=make: judge(make, problem)):
            yield {"codec": name, **row}
    if "scann" in given.who and 4 / bits == round(4 / bits) and (bits * d / 4) % 1 == 0:
        row = peers.scann(peer_python(given.peers), problem, round(4 / bits))
        if "found" in row:
            row["recall"] = recall_k_at_k(row.pop("found"), problem.truth, NEIGHBOURS)
        yield {"codec": "ScaNN", **row}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    options.add_argument("--bits", nargs="+", type=float, default=BITS, help="bits a column")
    options.add_argument("--who", nargs="+", choices=WHO, default=WHO)
    options.add_argument("--codecs", nargs="+", metavar="NAME", help="only those whose names begin so")
    options.add_argument("--limit", type=int, default=300, help="CPU seconds of one codec at one size")
    given = options.parse_args()
    limit_threads(given.threads)
    for name in ("sift",) if given.quick else given.sets:
        problem, file = load(name, given.data), f"codecs_{name}"
        settings: dict[str, Any] = {"learned": len(problem.learned), "searched": len(problem.searched)}
        settings |= {"queries": QUERIES, "limit": given.limit}
        for bits in (0.25,) if given.quick else given.bits:
            for row in measured(problem, bits, given):
                row = {"data": name, "bits": bits, **row}
                rows = [old for old in Results(RESULTS).read(file) or [] if _key(old) != _key(row)]
                save(file, [*rows, row], **settings, threads=given.threads, data=given.data)
                print(time.strftime("%H:%M"), row, flush=True)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["data"], row["bits"], row["codec"]


if __name__ == "__main__":
    main()
