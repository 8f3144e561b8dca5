"""ScaNN and usearch for `curve.py`, in the Python that has them."""

from typing import Any

import numpy as np

EF = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)
PROBES = (1, 2, 4, 8, 16, 32, 64, 128)
TREE = {10_000: 64, 100_000: 256, 1_000_000: 1_024, 10_000_000: 4_096}  # lists of so many rows


class Scann:
    """A tree, codes of 4 bits for `columns` columns, and candidates re-ranked by the rows, of floats or of bytes."""

    def __init__(self, X: np.ndarray, columns: int, learned: int, cores: int, *, rounded: bool) -> None:
        import scann

        builder = scann.scann_ops_pybind.builder(X, 10, "squared_l2").set_n_training_threads(cores)
        builder = builder.tree(
            num_leaves=lists_of(len(X)), num_leaves_to_search=8, training_sample_size=min(learned, len(X))
        )
        loss = float("nan")  # the plain one; the anisotropic one is for inner products
        sample = min(learned, len(X))
        self._whole = builder.score_ah(columns, anisotropic_quantization_threshold=loss, training_sample_size=sample)
        self._searcher = self._whole.reorder(40, quantize=rounded).build()
        self._code, self._row = -(-X.shape[1] // columns) / 2, X.shape[1] * (1 if rounded else 4)
        self.efforts = [(count, again) for again in (0, 30, 100, 300) for count in PROBES if count <= lists_of(len(X))]

    def threads(self, count: int) -> None:
        self._call = self._searcher.search_batched if count == 1 else self._searcher.search_batched_parallel

    def searching(self, effort: tuple[int, int]) -> Any:
        probes, again = effort
        some = {"leaves_to_search": probes, "final_num_neighbors": 10, "pre_reorder_num_neighbors": again or 10}
        return lambda Q: self._call(Q, **some)[0]

    def size(self, effort: tuple[int, int]) -> float:
        return self._code + self._row * (effort[1] > 0)


class Usearch:
    """A graph over bytes."""

    efforts = EF

    def __init__(self, rows: Any, cores: int) -> None:
        from usearch.index import Index

        self._index = Index(ndim=rows.d, metric="l2sq", dtype="i8", connectivity=16, expansion_add=64)
        first = 0
        for block in rows.blocks():
            self._index.add(np.arange(first, first + len(block)), _signed(block), threads=cores)
            first += len(block)
        self._size = self._index.memory_usage / rows.n

    def threads(self, count: int) -> None:
        self._count = count

    def searching(self, effort: int) -> Any:
        def search(Q: np.ndarray) -> np.ndarray:
            self._index.expansion_search = effort
            found = self._index.search(_signed(Q), 10, threads=self._count)
            return found.keys.reshape(len(Q), -1)

        return search

    def size(self, effort: int) -> float:
        return self._size


def _signed(X: np.ndarray) -> np.ndarray:
    """Bytes from 0 on as whole numbers about 0: distances stay."""
    return (X.astype(np.int16) - 128).astype(np.int8)


def lists_of(n: int) -> int:
    """Inverted lists of so many rows."""
    return next((lists for size, lists in TREE.items() if n <= size), 4_096)


def make(name: str, rows: Any, learned: np.ndarray, cores: int) -> Any:
    if name.startswith("usearch"):
        return Usearch(rows, cores)
    return Scann(
        rows.whole(), int(name.removesuffix(", int8").split()[1]), len(learned), cores, rounded=name.endswith("int8")
    )
