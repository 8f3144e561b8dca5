"""cblearn, in the peers' environment: it pins NumPy 1.26."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from nearkin.records import Comparisons


def run_peer(python: Path, train: Comparisons, test: Comparisons, p: int, loss: str, limit: float) -> dict[str, Any]:
    """cblearn's fit of the same answers, in a process of its own with one thread; `limit` seconds at most."""
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.npz"
        np.savez(problem, train=train.indices, test=test.indices, n=train.n_objects, p=p)
        script = Path(__file__).parent / "peer_cblearn.py"
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [str(python), str(script), str(problem), loss, str(limit)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **one},
        )
    return json.loads(done.stdout)
