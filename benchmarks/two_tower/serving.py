"""What a service does: reading a million pairs, and the ten best unseen rights of every left."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import nearkin as nk

PAIRS = 1_000_000
REPEATS = 3


def serving(folder: Path) -> dict[str, dict[str, float]]:
    """CPU and wall seconds of reading; lefts a CPU second of gowalla, by the vectors and by codes of 16 bytes."""
    found = {"reading a million pairs, csv": _reading()}
    pairs = nk.data.split_given(nk.read_interactions(folder / "gowalla.npz")).train
    model = nk.TwoTower(64, loss="all-pairs", random_state=0).fit(pairs)
    quantizer = nk.ProductQuantizer(16, random_state=0).fit(model.right_embeddings_)
    coded = nk.Index.build(model.right_embeddings_, quantizer, metric="ip")
    ways = {"recommend, vectors": None, "recommend, codes of 16 bytes": coded.faiss_index}
    for name, index in ways.items():
        cpu, wall = _fastest(lambda index=index: model.recommend(k=10, index=index))
        found[name] = {"cpu seconds": cpu, "wall seconds": wall, "lefts a cpu second": pairs.shape[0] / cpu}
    for name, row in found.items():
        print(name, row, flush=True)
    return found


def _reading() -> dict[str, float]:
    rng = np.random.default_rng(0)
    columns = rng.integers(0, (200_000, 50_000, 5, 10**9), (PAIRS, 4))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        np.savetxt(path, columns, fmt="%d", delimiter=",", header="user,item,rating,timestamp", comments="")
        cpu, wall = _fastest(lambda: nk.read_interactions(path))
    return {"cpu seconds": cpu, "wall seconds": wall}


def _fastest(function: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of the fastest of a few calls, after one that compiles."""
    function()
    times = []
    for _ in range(REPEATS):
        cpu, wall = time.process_time(), time.perf_counter()
        function()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(times)
