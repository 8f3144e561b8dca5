"""What quantizers are measured against: FAISS's OPQ here, nanopq in the peers' environment."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import faiss
import numpy as np


def faiss_opq(X: np.ndarray, M: int, bits: int, start: str, n_iter: int | None) -> Any:
    """A trained OPQ + PQ index; `start` "identity", or FAISS's own "random" one, `n_iter` None for its default."""
    d = X.shape[1]
    opq = faiss.OPQMatrix(d, M)
    if n_iter is not None:
        opq.niter = n_iter
    if start == "identity":
        faiss.copy_array_to_vector(np.eye(d, dtype=np.float32).ravel(), opq.A)
        opq.is_trained = True
    inner = faiss.IndexPQ(d, M, bits)
    index = faiss.IndexPreTransform(opq, inner)
    opq.train(X)  # by hand: an index does not train a transform that says it is trained
    inner.train(opq.apply(X))
    index.is_trained = True
    return index


def nanopq(python: Path | None, X: np.ndarray, test: np.ndarray, M: int, K: int) -> dict[str, Any]:
    """nanopq's OPQ with its defaults, by the peers' Python: CPU seconds and held-out distortion."""
    if python is None:
        return {"note": "not installed"}
    with tempfile.TemporaryDirectory() as name:
        np.savez(f"{name}/data.npz", X=X, test=test)
        command = [python, Path(__file__).with_name("peer_nanopq.py"), f"{name}/data.npz", str(M), str(K)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])
