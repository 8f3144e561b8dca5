"""Codes of 1 to 4 bits a column that are learned in seconds: axis codes, FAISS's scalar codes, and turbovec.

    python -m benchmarks codecs axes
    python -m benchmarks codecs axes --quick --data DIR --peers ENVIRONMENT

Glosses of WordNet (384 columns, length 1) by inner products, and GIST descriptors (512 columns) by distance: a thousand
rows as queries, half of the others to learn from, half to search. Ours has the bytes of each rival, and is searched by
`nk.Index`. EDEN and RaBitQ are FAISS's, behind a random rotation; turbovec is calibrated on 4,096 of the rows to learn
from and has no code of 1 bit. Seconds are CPU seconds of one thread: the fit, and 1,000 queries.
"""

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import nearkin as nk
from benchmarks.codecs.run import learned_bytes
from benchmarks.harness import arrays, by_peer, cpu_seconds
from benchmarks.jobs import Job, command
from benchmarks.options import peer_python
from nearkin._exact import nearest
from nearkin.metrics import recall_k_at_k

FILES = {"sentences": "wordnet_minilm", "gist": "cifar10_gist512"}
NEIGHBOURS, QUERIES = 10, 1_000
Record = dict[str, Any]


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for name in FILES:
        yield "codecs_axes", Job({"set": name}, partial(of_set, name, given))


def of_set(name: str, given: Namespace) -> Iterator[Record]:
    return compared(rows(name, given.data, given.quick), peer_python(given.peers), given.quick)


def main() -> None:
    command(__doc__, jobs, {"neighbours": NEIGHBOURS, "queries": QUERIES})


def rows(name: str, folder: Path, quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, rows to learn from and rows to search, in an order drawn once."""
    X = arrays(folder, FILES[name], "X")[0].astype(np.float32)
    X = X[np.random.default_rng(0).permutation(len(X))[: 5_000 if quick else None]]
    half = (len(X) - QUERIES) // 2
    return X[:QUERIES], X[QUERIES : QUERIES + half], X[QUERIES + half :]


def compared(parts: tuple[np.ndarray, ...], python: Path | None, quick: bool) -> Iterator[Record]:
    queries, _, searched = parts
    by_products = bool(np.allclose(np.linalg.norm(searched, axis=1), 1, atol=1e-3))
    metric = faiss.METRIC_INNER_PRODUCT if by_products else faiss.METRIC_L2
    true = nearest(searched, queries, NEIGHBOURS, "cosine" if by_products else "l2")[1]
    for bits in (2,) if quick else (1, 2, 4):
        rivals = [
            theirs(f"RR,EDEN{bits}", parts, metric),
            theirs(f"RR,RaBitQ{bits if bits > 1 else ''}", parts, metric),
        ]
        if bits == 4:
            rivals.append(theirs("SQ4", parts, metric))
        if bits > 1 and by_products:
            rivals.append(turbovec(python, parts, bits))
        for record in rivals:
            yield judged(record, true, bits)
        for n_bytes in sorted({len(searched[0]) * bits // 8, *(r["bytes"] for r in rivals if "bytes" in r)}):
            yield judged(ours(n_bytes, parts, by_products), true, bits)


def judged(record: Record, true: np.ndarray, bits: int) -> Record:
    found = record.pop("found", None)
    recall = None if found is None else round(recall_k_at_k(found, true, NEIGHBOURS), 4)
    record = {"bits": bits, "recall": recall, **record}
    print(record, flush=True)
    return record


def ours(n_bytes: int, parts: tuple[np.ndarray, ...], by_products: bool) -> Record:
    queries, learned, searched = parts
    fit, model = cpu_seconds(lambda: nk.quantization.AxisQuantizer(n_bytes).fit(learned))
    index = nk.Index.build(searched, model, metric="ip" if by_products else "l2")
    search, (_, found) = cpu_seconds(lambda: index.search(queries, NEIGHBOURS))
    n_bytes, code = index.bytes_per_vector, "nearkin AxisQuantizer"
    whole = n_bytes + learned_bytes(model) / len(searched)
    return {"code": code, "bytes": n_bytes, "with_codebooks": whole, "fit": fit, "search": search, "found": found}


def theirs(text: str, parts: tuple[np.ndarray, ...], metric: int) -> Record:
    queries, learned, searched = parts
    index = faiss.index_factory(searched.shape[1], text, metric)
    fit, _ = cpu_seconds(lambda: index.train(learned))
    index.add(searched)
    search, (_, found) = cpu_seconds(lambda: index.search(queries, NEIGHBOURS))
    code, n_bytes, whole = f"FAISS {text}", index.sa_code_size(), faiss.serialize_index(index).nbytes / len(searched)
    return {"code": code, "bytes": n_bytes, "with_codebooks": whole, "fit": fit, "search": search, "found": found}


def turbovec(python: Path | None, parts: tuple[np.ndarray, ...], bits: int) -> Record:
    """Of the peers' environment, if that has it."""
    arrays = dict(zip(("queries", "learned", "searched"), parts, strict=True))
    return {"code": "turbovec", **by_peer(python, Path(__file__).with_name("peer_turbovec.py"), arrays, bits)}
