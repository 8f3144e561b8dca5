"""implicit's ALS, in the peers' environment."""

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.two_tower.problems import test_metrics
from nearkin.data import Parts


def run_peer(python: Path, parts: Parts, seed: int, settings: list | None = None) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        arrays = {"shape": parts.train.shape}
        for name in ("train", "valid"):
            part = getattr(parts, name)
            arrays |= {f"{name}_indptr": part.indptr, f"{name}_indices": part.indices}
        np.savez(f"{folder}/split.npz", **arrays)
        script = Path(__file__).with_name("peer_implicit.py")
        command = [
            python,
            script,
            f"{folder}/split.npz",
            f"{folder}/out.npz",
            "64",
            str(seed),
            *map(str, settings or []),
        ]
        subprocess.run(command, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        with np.load(f"{folder}/out.npz") as z:
            found = test_metrics(z["left"], z["right"], parts)
            return found | {"seconds": float(z["seconds"]), "settings": z["settings"].tolist()}
