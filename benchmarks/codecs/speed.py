"""Neighbours kept against queries a second among 10^5 and 10^6 rows: ours, FAISS's own factory strings, and ScaNN.

    python -m benchmarks codecs speed --only "ours, residual" "FAISS IVF,PQ16"
    python -m benchmarks codecs speed --million --threads 2
    python -m benchmarks codecs speed --figure

SIFT descriptors, 100,000 rows under 16 bytes each, norms included and the list's number not, in 256 lists (ScaNN:
leaves), all learned from 16,384 other rows; 1,000 queries in one call, the quickest of three. Each point visits twice
as many lists as the one before. "exact after" re-ranks 100 candidates by the rows themselves, which are kept too.
`--million`: nine more rows for each, on the lines to its nine nearest in a tenth of the rows, and 1,024 lists. Seconds
are of the processor with one thread and by the clock with more: keep the machine quiet for these.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from timeit import repeat
from typing import Any

import faiss
import numpy as np

from benchmarks import drawing
from benchmarks.harness import arrays, by_peer, cpu_seconds
from benchmarks.jobs import Job, Row, command
from benchmarks.options import RESULTS, peer_python
from benchmarks.table import Results
from nearkin import Index, ProductQuantizer
from nearkin.contracts import VectorCodes
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer

LEARNED, CANDIDATES, NEIGHBOURS = 16_384, 100, 10
PROBES = (1, 2, 4, 8, 16, 32, 64)
SIZES = {"codecs_speed": 256, "codecs_speed_million": 1_024}  # results and lists
MORE = 9  # rows made for each descriptor

Search = Callable[[np.ndarray, int], np.ndarray]  # queries (q, d) and lists to visit -> ids (q, 10)
FACTORY = {
    "IVF,PQ16": "IVF{},PQ16np",
    "OPQ16,IVF,PQ16": "OPQ16,IVF{},PQ16np",
    "IVF,PQ32x4fs": "IVF{},PQ32x4fs",
    "IVF,PQ32x4fs, exact after": "IVF{},PQ32x4fs,RFlat",
    "HNSW32, no codes": "HNSW32,Flat",
}
OURS: dict[str, Callable[[int], VectorCodes]] = {
    "product": lambda lists: ProductQuantizer(16, n_lists=lists, random_state=0),
    "product, 4 bits": lambda lists: ProductQuantizer(32, 16, n_lists=lists, random_state=0),
    "residual": lambda lists: ResidualQuantizer(16, n_lists=lists, random_state=0),
    "residual, 4 bits": lambda lists: ResidualQuantizer(30, 16, norm_bits=8, n_lists=lists, random_state=0),
    "product residual, 4 bits": lambda lists: ProductResidualQuantizer(
        15, 2, 16, norm_bits=8, n_lists=lists, random_state=0
    ),
}
EXACT = ("product, 4 bits", "residual, 4 bits", "product residual, 4 bits")  # also followed by exact rows


def made(name: str, learned: np.ndarray, rows: np.ndarray, lists: int) -> tuple[Search, dict[str, float]]:
    """A search of the rows in that many lists under that name, and what it took to make."""
    who, kind = name.split(" ", 1)
    if who == "FAISS":
        return _faiss(FACTORY[kind].format(lists), learned, rows)
    again = CANDIDATES / NEIGHBOURS if "exact" in kind else None
    fitting, quantizer = cpu_seconds(lambda: OURS[kind.removesuffix(", exact after")](lists).fit(learned))
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


def points(search: Search, Q: np.ndarray, truth: np.ndarray, threads: int) -> Iterator[dict[str, float]]:
    """Recall and queries a second as more lists are visited."""
    clock = time.process_time if threads == 1 else time.perf_counter
    for probes in PROBES:
        found = search(Q, probes)
        seconds = min(repeat(partial(search, Q, probes), timer=clock, repeat=3, number=1))
        yield {"probes": probes, "recall": recall_k_at_k(found, truth, NEIGHBOURS), "per_second": len(Q) / seconds}


def scann(
    python: Path | None, rows: np.ndarray, Q: np.ndarray, truth: np.ndarray, lists: int, threads: int, *, exact: bool
) -> dict[str, Any]:
    """ScaNN's tree and codes, by the peers' Python; it learns from rows that it searches."""
    numbers = 4, lists, LEARNED, CANDIDATES if exact else 0, threads, *PROBES
    script = Path(__file__).with_name("peer_scann.py")
    row = by_peer(python, script, {"searched": rows, "queries": Q}, *numbers)
    found = row.pop("each", {})
    for point in row.get("points", []):
        point["recall"] = recall_k_at_k(found[str(point["probes"])], truth, NEIGHBOURS)
    return row


_DRAWN = {  # ours, the best rival, others in grey
    "without rescoring": {
        "ours, residual": drawing.OURS,
        "ours, residual, 4 bits": drawing.OURS,
        "ours, product, 4 bits": drawing.OURS,
        "FAISS IVF,PQ32x4fs": drawing.RIVAL,
        "FAISS OPQ16,IVF,PQ16": drawing.REST,
        "ScaNN": drawing.REST,
    },
    "rescored by exact vectors": {
        "ours, residual, 4 bits, exact after": drawing.OURS,
        "ours, product, 4 bits, exact after": drawing.OURS,
        "ScaNN, exact after": drawing.RIVAL,
        "FAISS IVF,PQ32x4fs, exact after": drawing.REST,
        "FAISS HNSW32, no codes": drawing.REST,
    },
}


def million(rows: np.ndarray) -> np.ndarray:
    """The rows (n, d), and `MORE` others for each, at random places of the lines to its nearest in a tenth of them."""
    rng = np.random.default_rng(0)
    found = [rows]
    for part in np.array_split(rows[rng.permutation(len(rows))], 10):
        near = faiss.knn(part, part, MORE + 1)[1][:, 1:]
        share = rng.uniform(0.2, 0.8, (*near.shape, 1)).astype(np.float32)
        found.append((part[:, None] * (1 - share) + part[near] * share).reshape(-1, rows.shape[1]))
    return np.concatenate(found)


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


def measured(name: str, parts: tuple[np.ndarray, ...], lists: int, given: Namespace) -> Row:
    """The row of one code."""
    learned, rows, Q, truth = parts
    if name.startswith("ScaNN"):
        return scann(peer_python(given.peers), rows, Q, truth, lists, given.threads, exact="exact" in name)
    search, row = made(name.replace("ours, ", "ours "), learned[:LEARNED], rows, lists)
    return row | {"points": list(points(search, Q, truth, given.threads))}


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    size = "codecs_speed_million" if given.million else "codecs_speed"
    file = size if given.threads == 1 else f"{size}_{given.threads}t"
    wanted = () if given.figure else given.only[:1] if given.quick else given.only
    if wanted:
        parts = arrays(given.data, "sift_bsds", "learn", "base", "query")
        learned, rows, Q = (np.ascontiguousarray(part, np.float32) for part in parts)
        rows = million(rows) if given.million else rows
        parts = learned, rows, Q, faiss.knn(Q, rows, NEIGHBOURS)[1]
    for name in wanted:
        yield file, Job({"codec": name}, partial(measured, name, parts, SIZES[size], given))


def main() -> None:
    ours = [f"ours, {name}" for name in (*OURS, *(f"{name}, exact after" for name in EXACT))]
    names = (*ours, *(f"FAISS {text}" for text in FACTORY), "ScaNN", "ScaNN, exact after")
    command(__doc__, jobs, {"learned": LEARNED}, only=names, million=False, figure=False)
    print(draw(Results(RESULTS).read("codecs_speed") or []))
