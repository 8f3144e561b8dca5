"""What it takes to learn and to choose residual and product residual codes: ours beside FAISS's of the same form.

    python -m benchmarks codecs training --sets sift --codes 1x8 2x8

Codes of 8 bits: 1x8 is a sum of 8 centroids, 2x6 such sums of 6 in both halves. The same rows, one thread, CPU seconds;
FAISS by its own default training, both choose codes by a beam of 16 afterwards. Recall 10@10 by codes alone, as in
`python -m benchmarks codecs`.
"""

from collections.abc import Iterable
from typing import Any

import faiss

from benchmarks.codecs.problems import NEIGHBOURS, REAL, SETS, Problem, load
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import RESULTS, parser
from benchmarks.table import Results, Table, number
from nearkin._faiss import nearest_codes
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer

BEAM = 16
CODES = {"sift": ("1x8", "2x8"), "mnist": ("4x7",), "sentences": ("1x12", "2x6"), "vocabulary": ("1x10",)}
FILE = "codecs_training"


def ours(problem: Problem, splits: int, length: int) -> dict[str, float]:
    """Learned for rows that are not those searched, where they are not."""
    others = problem.learned is not problem.searched
    settings: dict[str, Any] = {"beam_size": BEAM, "smoothing": 1.0 if others else 0.5, "random_state": 0}
    model = (
        ProductResidualQuantizer(splits, length, **settings) if splits > 1 else ResidualQuantizer(length, **settings)
    )
    seconds, _ = cpu_seconds(lambda: model.fit(problem.learned))
    index = model.to_faiss()
    adding, _ = cpu_seconds(lambda: model.add_to(index, problem.searched))
    return _found(problem, index, seconds, adding)


def theirs(problem: Problem, splits: int, length: int) -> dict[str, float]:
    if splits > 1:
        index = faiss.IndexProductResidualQuantizer(problem.d, splits, length, 8)
        parts = [faiss.downcast_AdditiveQuantizer(index.prq.subquantizer(m)) for m in range(splits)]
    else:
        index = faiss.IndexResidualQuantizer(problem.d, length, 8)
        parts = [index.rq]
    seconds, _ = cpu_seconds(lambda: index.train(problem.learned))
    for part in parts:
        part.max_beam_size = BEAM
    adding, _ = cpu_seconds(lambda: index.add(problem.searched))
    return _found(problem, index, seconds, adding)


def _found(problem: Problem, index: faiss.Index, training: float, adding: float) -> dict[str, float]:
    recall = recall_k_at_k(nearest_codes(index, problem.queries, NEIGHBOURS), problem.truth, NEIGHBOURS)
    return {"recall": recall, "train_seconds": training, "encode_microseconds": 1e6 * adding / len(problem.searched)}


def tables(results: Results) -> Iterable[Table]:
    """A row a code."""
    found = results.read(FILE)
    if not found:
        return
    table = Table(
        "codecs-training",
        f"Learning and choosing codes of one form, one thread, a beam of {BEAM} (recall 10@10)",
        [
            "data", "code", "recall: ours", "FAISS", "training, CPU s: ours", "FAISS", "ours / FAISS",
            "encoding, µs a row: ours", "FAISS",
        ],
        FILE,
    )  # fmt: skip
    for row in found:
        pairs = [(row["ours"][name], row["FAISS"][name]) for name in ("recall", "train_seconds", "encode_microseconds")]
        cells = [[number(value) for value in pair] for pair in pairs]
        ratio = f"{pairs[1][0] / pairs[1][1]:.2f}"
        table.rows.append([row["data"], row["code"], *cells[0], *cells[1], ratio, *cells[2]])
    yield table


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", choices=SETS, default=REAL)
    options.add_argument("--codes", nargs="+", help="as 2x6; by default those of each set")
    given = options.parse_args()
    limit_threads(given.threads)
    for name in ("sift",) if given.quick else given.sets:
        problem = load(name, given.data, 2_048 if given.quick else None)
        for code in given.codes or CODES[name]:
            splits, length = map(int, code.split("x"))
            row = {"data": name, "code": code}
            row |= {"ours": ours(problem, splits, length), "FAISS": theirs(problem, splits, length)}
            rows = [old for old in Results(RESULTS).read(FILE) or [] if (old["data"], old["code"]) != (name, code)]
            save(FILE, [*rows, row], threads=given.threads, beam=BEAM, data=given.data)
            print(row, flush=True)


if __name__ == "__main__":
    main()
