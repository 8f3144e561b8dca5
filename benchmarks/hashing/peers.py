"""FAISS's own hashers."""

import time

import faiss
import numpy as np

from benchmarks.hashing.judge import Judge

PEERS = ("FAISS ITQ", "FAISS RaBitQ")
RABITQ_QUERIES = 500  # its full ranking is by real numbers, one sort per query


def run_peer(name: str, n_bits: int, seed: int, train: np.ndarray, judge: Judge) -> dict[str, float]:
    """FAISS's own ITQ behind its LSH index, or RaBitQ after a random rotation to n_bits dimensions."""
    f = judge.features
    start = time.process_time()
    if name == "FAISS ITQ":
        transform = faiss.ITQTransform(train.shape[1], n_bits, True)
        transform.itq.seed = seed + 1
        transform.train(train)
        fitted = time.process_time() - start
        lsh = faiss.IndexLSH(n_bits, n_bits, False)
        base, queries = (lsh.sa_encode(transform.apply(X)) for X in (f.base, f.queries))
        return {**judge.codes(queries, base), "fit seconds": fitted}
    rotation = faiss.RandomRotationMatrix(train.shape[1], n_bits)
    rotation.init(seed + 1)
    index = faiss.IndexRaBitQ(n_bits, faiss.METRIC_L2)
    centred = [rotation.apply(X - train.mean(axis=0)) for X in (f.base, f.queries[judge.some[:RABITQ_QUERIES]])]
    index.train(centred[0])
    fitted = time.process_time() - start
    index.add(centred[0])
    ids = index.search(centred[1], len(f.base))[1]
    return {**judge.ranking(ids), "fit seconds": fitted}
