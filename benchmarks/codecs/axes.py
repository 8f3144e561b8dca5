"""Codes of 1 to 4 bits a column that are learned in seconds: axis codes, FAISS's scalar codes, and turbovec.

    python -m benchmarks codecs axes
    python -m benchmarks codecs axes --quick --data DIR --peers ENVIRONMENT

Glosses of WordNet (384 columns, length 1) by inner products, and GIST descriptors (512 columns) by distance: a thousand
rows as queries, half of the others to learn from, half to search. Ours has the bytes of each rival, and is searched by
`nk.Index`. EDEN and RaBitQ are FAISS's, behind a random rotation; turbovec is calibrated on 4,096 of the rows to learn
from and has no code of 1 bit. Seconds are CPU seconds of one thread: the fit, and 1,000 queries.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import nearkin as nk
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import parser, peer_python
from nearkin.metrics import recall_k_at_k

FILES = {"sentences": "wordnet_minilm.npz", "gist": "cifar10_gist512.npz"}
NEIGHBOURS, QUERIES = 10, 1_000
Record = dict[str, Any]


def main() -> None:
    options = parser(__doc__).parse_args()
    limit_threads(options.threads)
    records = [
        {"set": name, **record}
        for name in FILES
        for record in compared(rows(name, options.data, options.quick), peer_python(options.peers), options.quick)
    ]
    save("codecs_axes", records, neighbours=NEIGHBOURS, queries=QUERIES, threads=options.threads)


def rows(name: str, folder: Path, quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Queries, rows to learn from and rows to search, in an order drawn once."""
    with np.load(folder / FILES[name]) as data:
        X = data["X"].astype(np.float32)
    X = X[np.random.default_rng(0).permutation(len(X))[: 5_000 if quick else None]]
    half = (len(X) - QUERIES) // 2
    return X[:QUERIES], X[QUERIES : QUERIES + half], X[QUERIES + half :]


def compared(parts: tuple[np.ndarray, ...], python: Path | None, quick: bool) -> Iterator[Record]:
    queries, _, searched = parts
    by_products = bool(np.allclose(np.linalg.norm(searched, axis=1), 1, atol=1e-3))
    metric = faiss.METRIC_INNER_PRODUCT if by_products else faiss.METRIC_L2
    true = faiss.knn(queries, searched, NEIGHBOURS, metric=metric)[1]
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
    return {
        "code": "nearkin AxisQuantizer",
        "bytes": index.bytes_per_vector,
        "fit": fit,
        "search": search,
        "found": found,
    }


def theirs(text: str, parts: tuple[np.ndarray, ...], metric: int) -> Record:
    queries, learned, searched = parts
    index = faiss.index_factory(searched.shape[1], text, metric)
    fit, _ = cpu_seconds(lambda: index.train(learned))
    index.add(searched)
    search, (_, found) = cpu_seconds(lambda: index.search(queries, NEIGHBOURS))
    return {"code": f"FAISS {text}", "bytes": index.sa_code_size(), "fit": fit, "search": search, "found": found}


def turbovec(python: Path | None, parts: tuple[np.ndarray, ...], bits: int) -> Record:
    """Of the peers' environment, if that has it."""
    queries, learned, searched = parts
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/data.npz", learned=learned, searched=searched, queries=queries)
        script = str(Path(__file__).with_name("peer_turbovec.py"))
        done = subprocess.run([str(python), script, folder, str(bits)], check=False, capture_output=True, text=True)
        if python is None or done.returncode:
            return {"code": "turbovec", "note": "not installed"}
        return {"code": "turbovec", **json.loads(done.stdout), "found": np.load(f"{folder}/found.npy")}


if __name__ == "__main__":
    main()
