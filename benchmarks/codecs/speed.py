"""Neighbours kept against queries a second among 100,000 rows: ours, FAISS's own factory strings, and ScaNN.

    python -m benchmarks codecs speed --only "ours, residual" --only "FAISS IVF256,PQ16"
    python -m benchmarks codecs speed --figure

SIFT descriptors, 100,000 rows under 16 bytes each, norms included and the list's number not, in 256 lists (ScaNN:
leaves), all learned from 16,384 other rows; one thread, 1,000 queries in one call, the quicker of two. Each point
visits twice as many lists as the one before. "exact after" re-ranks 100 candidates by the rows themselves, kept beside
the codes.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from benchmarks import drawing
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import RESULTS, parser, peer_python
from benchmarks.table import Results
from nearkin import Index, ProductQuantizer
from nearkin.contracts import VectorCodes
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer

LEARNED, LISTS, CANDIDATES, NEIGHBOURS = 16_384, 256, 100, 10
PROBES = (1, 2, 4, 8, 16, 32, 64)

Search = Callable[[np.ndarray, int], np.ndarray]  # queries (q, d) and lists to visit -> ids (q, 10)
FACTORY = {
    "IVF256,PQ16": "IVF256,PQ16np",
    "OPQ16,IVF256,PQ16": "OPQ16,IVF256,PQ16np",
    "IVF256,PQ32x4fs": "IVF256,PQ32x4fs",
    "IVF256,PQ32x4fs, exact after": "IVF256,PQ32x4fs,RFlat",
    "HNSW32, no codes": "HNSW32,Flat",
}
OURS: dict[str, Callable[[], VectorCodes]] = {
    "product": lambda: ProductQuantizer(16, n_lists=LISTS, random_state=0),
    "product, 4 bits": lambda: ProductQuantizer(32, 16, n_lists=LISTS, random_state=0),
    "product, 4 bits, exact after": lambda: ProductQuantizer(32, 16, n_lists=LISTS, random_state=0),
    "residual": lambda: ResidualQuantizer(16, n_lists=LISTS, random_state=0),
    "residual, 4 bits": lambda: ResidualQuantizer(30, 16, norm_bits=8, n_lists=LISTS, random_state=0),
    "residual, 4 bits, exact after": lambda: OURS["residual, 4 bits"](),
    "product residual, 4 bits": lambda: ProductResidualQuantizer(15, 2, 16, norm_bits=8, n_lists=LISTS, random_state=0),
    "product residual, 4 bits, exact after": lambda: OURS["product residual, 4 bits"](),
}


def made(name: str, learned: np.ndarray, rows: np.ndarray) -> tuple[Search, dict[str, float]]:
    """A search of the rows under that name, and what it took to make."""
    who, kind = name.split(" ", 1)
    if who == "FAISS":
        return _faiss(FACTORY[kind], learned, rows)
    kind, again = kind, CANDIDATES / NEIGHBOURS if "exact" in kind else None
    fitting, quantizer = cpu_seconds(lambda: OURS[kind]().fit(learned))
    adding, index = cpu_seconds(lambda: Index.build(rows, quantizer, keep_vectors=again is not None))

    def search(Q: np.ndarray, probes: int) -> np.ndarray:
        index.n_probe = probes
        return index.search(Q, NEIGHBOURS, oversample=again)[1]

    return search, {"train_seconds": fitting, "add_seconds": adding, "bytes": index.bytes_per_vector}


def _faiss(text: str, learned: np.ndarray, rows: np.ndarray) -> tuple[Search, dict[str, float]]:
    index = faiss.index_factory(learned.shape[1], text)
    training, _ = cpu_seconds(lambda: index.train(learned))
    adding, _ = cpu_seconds(lambda: index.add(rows))
    inner = index
    if "RFlat" in text:
        index.k_factor, inner = CANDIDATES / NEIGHBOURS, faiss.downcast_index(index.base_index)

    def search(Q: np.ndarray, probes: int) -> np.ndarray:
        if "HNSW" in text:
            index.hnsw.efSearch = 8 * probes
        else:
            faiss.extract_index_ivf(inner).nprobe = probes
        return index.search(Q, NEIGHBOURS)[1]

    size = 0 if "HNSW" in text else inner.sa_code_size()
    return search, {"train_seconds": training, "add_seconds": adding, "bytes": size}


def points(search: Search, Q: np.ndarray, truth: np.ndarray) -> Iterator[dict[str, float]]:
    """Recall and queries a second as more lists are visited."""
    for probes in PROBES:
        found = search(Q, probes)
        seconds = min(cpu_seconds(lambda p=probes: search(Q, p))[0] for _ in range(2))
        yield {"probes": probes, "recall": recall_k_at_k(found, truth, NEIGHBOURS), "per_second": len(Q) / seconds}


def scann(python: Path | None, rows: np.ndarray, Q: np.ndarray, truth: np.ndarray, *, exact: bool) -> dict[str, Any]:
    """ScaNN's tree and codes, by the peers' Python; it learns from rows that it searches."""
    if python is None:
        return {"note": "not installed"}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/data.npz", searched=rows, queries=Q)
        script = Path(__file__).with_name("peer_scann_tree.py")
        command = [python, script, folder, str(LISTS), str(LEARNED), str(CANDIDATES if exact else 0), *map(str, PROBES)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            return {"note": f"not installed or failed: {(done.stderr.splitlines() or [''])[-1]}"}
        row = json.loads(done.stdout.splitlines()[-1])
        for point in row["points"]:
            point["recall"] = recall_k_at_k(np.load(f"{folder}/{point['probes']}.npy"), truth, NEIGHBOURS)
        return row


_DRAWN = {  # ours, the best rival, others in grey
    "codes alone": {
        "ours, residual": drawing.OURS,
        "ours, residual, 4 bits": drawing.OURS,
        "ours, product, 4 bits": drawing.OURS,
        "FAISS IVF256,PQ32x4fs": drawing.RIVAL,
        "FAISS OPQ16,IVF256,PQ16": drawing.REST,
        "ScaNN": drawing.REST,
    },
    "exact rows kept too": {
        "ours, residual, 4 bits, exact after": drawing.OURS,
        "ours, product, 4 bits, exact after": drawing.OURS,
        "ScaNN, exact after": drawing.RIVAL,
        "FAISS IVF256,PQ32x4fs, exact after": drawing.REST,
        "FAISS HNSW32, no codes": drawing.REST,
    },
}


def draw(rows: list[dict[str, Any]]) -> Path:
    """Two panels of at most six codes; the table of the page has all."""
    found = {row["codec"]: row["points"] for row in rows if "points" in row}
    figure, (axes,) = drawing.panels(1, 2, 5.2, 4.2, sharey=True)
    for panel, (title, roles) in zip(axes, _DRAWN.items(), strict=True):
        for name, style in drawing.styles(roles).items():
            if name in found:
                panel.plot(*([point[axis] for point in found[name]] for axis in ("recall", "per_second")), **style)
        panel.set(yscale="log", xlabel="recall 10@10", title=title)
        drawing.legend(panel, loc="lower left")
    axes[0].set_ylabel("queries a second of one thread")
    return drawing.save(figure, "codecs_speed")


def main() -> None:
    names = [*(f"ours, {name}" for name in OURS), *(f"FAISS {text}" for text in FACTORY), "ScaNN", "ScaNN, exact after"]
    options = parser(__doc__)
    options.add_argument("--only", action="append", choices=names, help="one of the codes; may be given again")
    options.add_argument("--figure", action="store_true", help="run nothing, draw")
    given = options.parse_args()
    limit_threads(given.threads)
    wanted = [] if given.figure else given.only or names[:1] if given.quick else given.only or names
    with np.load(given.data / "sift_bsds.npz") as z:
        learned, rows, Q = (np.ascontiguousarray(z[part], np.float32) for part in ("learn", "base", "query"))
        truth = z["gt100"][:, :NEIGHBOURS]
    for name in wanted:
        if name.startswith("ScaNN"):
            row = scann(peer_python(given.peers), rows, Q, truth, exact="exact" in name)
        else:
            search, row = made(name.replace("ours, ", "ours "), learned[:LEARNED], rows)
            row["points"] = list(points(search, Q, truth))
        row = {"codec": name, **row}
        kept = [old for old in Results(RESULTS).read("codecs_speed") or [] if old["codec"] != name]
        save("codecs_speed", [*kept, row], learned=LEARNED, lists=LISTS, threads=given.threads, data=given.data)
        print(time.strftime("%H:%M"), row, flush=True)
    found = Results(RESULTS).read("codecs_speed") or []
    print(draw(sorted(found, key=lambda row: names.index(row["codec"]))))


if __name__ == "__main__":
    main()
