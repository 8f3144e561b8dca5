"""nearkin and FAISS for `curve.py`: an engine under each name, built from rows read by blocks.

An engine has `efforts`, `threads(count)`, `searching(effort)` -> a function of queries, and `size(effort)` in bytes.
"""

from collections.abc import Callable
from typing import Any

import faiss
import numpy as np

import nearkin as nk
from benchmarks.codecs.peer_searchers import EF, PROBES, lists_of
from benchmarks.harness import limit_threads
from nearkin.quantization import ResidualQuantizer

_FIRST = 100_000  # rows from which `nk.Index.build` chooses, others are added
_AGAIN = (0, 3, 10, 30)  # candidates that exact vectors re-rank, in multiples of the ten wanted; 0: codes alone
_QUANTIZERS: dict[str, Callable[[int], Any]] = {
    "product 16": lambda lists: nk.ProductQuantizer(16, n_lists=lists, random_state=0),
    "product 32": lambda lists: nk.ProductQuantizer(32, n_lists=lists, random_state=0),
    "product 16 x 4 bits": lambda lists: nk.ProductQuantizer(16, 16, n_lists=lists, random_state=0),
    "product 32 x 4 bits": lambda lists: nk.ProductQuantizer(32, 16, n_lists=lists, random_state=0),
    "product 64 x 4 bits": lambda lists: nk.ProductQuantizer(64, 16, n_lists=lists, random_state=0),
    "residual 16": lambda lists: ResidualQuantizer(16, n_lists=lists, random_state=0),
}
OURS = (*(f"ours, {size} bytes" for size in (8, 16, 32, 64)), *(f"ours, {name}, lists" for name in _QUANTIZERS))
FACTORY = {
    **{f"FAISS PQ{2 * size}x4fs": f"PQ{2 * size}x4fs" for size in (8, 16, 32)},
    "FAISS OPQ, PQ32x4fs": "OPQ32,PQ32x4fs",
    "FAISS IVF, PQ16": "IVF{},PQ16np",
    "FAISS OPQ, IVF, PQ16": "OPQ16,IVF{},PQ16np",
    **{f"FAISS IVF, PQ{2 * size}x4fs": f"IVF{{}},PQ{2 * size}x4fs" for size in (8, 16, 32)},
    "FAISS HNSW16": "HNSW16,Flat",
    "FAISS HNSW16, bytes": "HNSW16,SQ8",
    "FAISS exact": "Flat",
}
PEERS = ("ScaNN 4", "ScaNN 4, int8", "ScaNN 2", "ScaNN 8", "usearch int8")


def _efforts(lists: int, again: bool) -> list[tuple[int, int]]:
    """Lists to visit, of so many, 0 without lists, and multiples of the rows wanted that are re-ranked."""
    probes = [count for count in PROBES if count <= lists] or [0]
    return [(count, more) for more in _AGAIN[: None if again else 1] for count in probes]


class Ours:
    """`nk.Index`, which keeps the rows for re-ranking."""

    def __init__(self, name: str, rows: Any, learned: np.ndarray) -> None:
        kind = name.removeprefix("ours, ")
        lists = kind.endswith(", lists")
        if lists:
            quantizer = _QUANTIZERS[kind.removesuffix(", lists")](lists_of(rows.n)).fit(learned)
            self._index = nk.Index.build(rows.read(0, _FIRST), quantizer, keep_vectors="int8")
        else:
            self._index = nk.Index.build(rows.read(0, _FIRST), int(kind.split()[0]), keep_vectors="int8")
        for block in rows.blocks(_FIRST):
            self._index.add(block)
        self._kept, self._number = rows.d + 4, lists * -(-(lists_of(rows.n) - 1).bit_length() // 8)
        self.efforts = _efforts(lists_of(rows.n) * lists, again=True)

    def threads(self, count: int) -> None:
        limit_threads(count)

    def searching(self, effort: tuple[int, int]) -> Any:
        probes, again = effort
        if probes:
            self._index.n_probe = probes
        return lambda Q: self._index.search(Q, 10, oversample=again or None)[1]

    def size(self, effort: tuple[int, int]) -> float:
        return self._index.bytes_per_vector - self._number + self._kept * (effort[1] > 0)


class Faiss:
    """A factory string; codes of 4 bits are followed by rows of a byte a number."""

    def __init__(self, name: str, rows: Any, learned: np.ndarray) -> None:
        lists = lists_of(rows.n)
        text, d = FACTORY[name].format(lists), rows.d
        again = "fs" in text
        self._index = index = faiss.index_factory(d, text + ",Refine(SQ8)" if again else text)
        self._lists, self._again, self._graph = "IVF" in text, again, "HNSW" in text
        if self._graph:
            index.hnsw.efConstruction = 40
        index.train(learned)
        for block in rows.blocks():
            index.add(block.astype(np.float32))
        links = 4 * 2 * 16 * 1.07 + 12  # of HNSW16: twice as many in the lowest layer, and a level and a place
        self._inner = faiss.downcast_index(index.base_index) if again else index
        self._size = (
            self._inner.sa_code_size()
            if not self._graph
            else faiss.downcast_index(index.storage).sa_code_size() + links
        )
        self._size -= self._lists * ((lists - 1).bit_length() + 7) // 8  # its list
        self._d = d
        self.efforts = list(EF) if self._graph else _efforts(lists * self._lists, again)

    def threads(self, count: int) -> None:
        limit_threads(count)

    def searching(self, effort: Any) -> Any:
        if self._graph:
            self._index.hnsw.efSearch = effort
        else:
            if self._lists:
                faiss.extract_index_ivf(self._inner).nprobe = effort[0]
            if self._again and effort[1]:
                self._index.k_factor = effort[1]
            elif self._again:
                return lambda Q: self._inner.search(np.asarray(Q, np.float32), 10)[1]
        return lambda Q: self._index.search(np.asarray(Q, np.float32), 10)[1]

    def size(self, effort: Any) -> float:
        return self._size + (self._d if self._again and effort[1] else 0)


def make(name: str, rows: Any, learned: np.ndarray, cores: int) -> Any:
    limit_threads(cores)
    X = learned.astype(np.float32)
    return Ours(name, rows, X) if name.startswith("ours") else Faiss(name, rows, X)
