"""implicit's ALS and BPR, in the peers' environment."""

import subprocess
from pathlib import Path

import numpy as np

from benchmarks.harness import by_peer
from nearkin.data import Parts


def with_implicit(python: Path | None) -> Path | None:
    """That Python, or None, which is said, if it has no implicit."""
    if python is None:
        return None
    found = subprocess.run([python, "-c", "import implicit"], capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"implicit is left out: {python} says {found.stderr.strip().splitlines()[-1:]}", flush=True)
    return None if found.returncode else python


def fit_peer(python: Path, method: str, parts: Parts, seed: int, settings: list | None = None) -> dict:
    """implicit's "als" or "bpr" on the training pairs: both tables, CPU seconds of the fit, and the settings."""
    arrays = {"shape": np.array(parts.train.shape)}
    for name, part in (("train", parts.train), ("valid", parts.valid)):
        arrays |= {f"{name}_indptr": part.indptr, f"{name}_indices": part.indices}
    row = by_peer(python, Path(__file__).with_name("peer_implicit.py"), arrays, method, 64, seed, *(settings or []))
    if "each" not in row:
        raise RuntimeError(f"implicit {row['note']}")
    return {
        "tables": (row["each"]["left"], row["each"]["right"]),
        "seconds": row["seconds"],
        "settings": row["settings"],
    }
