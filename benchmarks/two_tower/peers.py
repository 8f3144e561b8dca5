"""implicit's ALS and BPR, in the peers' environment."""

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.two_tower.problems import test_metrics
from nearkin.data import Parts


def with_implicit(python: Path | None) -> Path | None:
    """That Python, or None, which is said, if it has no implicit."""
    if python is None:
        return None
    found = subprocess.run([python, "-c", "import implicit"], capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"implicit is left out: {python} says {found.stderr.strip().splitlines()[-1:]}", flush=True)
    return None if found.returncode else python


def run_peer(python: Path, parts: Parts, seed: int, settings: list | None = None) -> dict:
    """implicit's ALS: its test metrics, seconds and settings, chosen on the validation pairs where none are given."""
    found = fit_peer(python, "als", parts, seed, settings)
    return test_metrics(*found["tables"], parts) | {name: found[name] for name in ("seconds", "settings")}


def fit_peer(python: Path, method: str, parts: Parts, seed: int, settings: list | None = None) -> dict:
    """implicit's "als" or "bpr" on the training pairs: both tables, CPU seconds of the fit, and the settings."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = {"shape": parts.train.shape}
        for name, part in (("train", parts.train), ("valid", parts.valid)):
            arrays |= {f"{name}_indptr": part.indptr, f"{name}_indices": part.indices}
        np.savez(f"{folder}/split.npz", **arrays)
        script = Path(__file__).with_name("peer_implicit.py")
        given = [f"{folder}/split.npz", f"{folder}/out.npz", method, "64", str(seed), *map(str, settings or [])]
        subprocess.run([python, script, *given], check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        with np.load(f"{folder}/out.npz") as z:
            tables = z["left"], z["right"]
            return {"tables": tables, "seconds": float(z["seconds"]), "settings": z["settings"].tolist()}
