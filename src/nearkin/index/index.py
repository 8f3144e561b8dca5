"""One index over exact vectors, bytes or bits, searched by FAISS, under the users' own ids."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import faiss
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from nearkin import hashing
from nearkin._check import check_choice, check_integer, check_vectors
from nearkin._storage import (
    one_version,
    pack_ids,
    read_arrays,
    read_config,
    saving_folder,
    unpack_ids,
    without_verification,
    write_arrays,
)
from nearkin.hashing.bits import n_bytes
from nearkin.index import identifiers
from nearkin.index.faiss_file import inverted_file, read_faiss, write_faiss
from nearkin.index.rescoring import KeptVectors, normalised, rescore
from nearkin.quantization.product import ProductQuantizer

METRICS = ("l2", "ip", "cosine", "hamming")
_CHUNK = 65_536  # rows added, or queries answered, at a time

Progress = Callable[[int, dict[str, Any]], None]


class Index:
    """Rows under ids, searched exactly or through the codes of a quantizer; made by `Index.build` or `Index.load`.

    Scores are squared L2 distances (smaller is nearer) for "l2", inner products (larger is nearer) for "ip" and, of
    normalised rows, for "cosine", and numbers of differing bits for "hamming".

    `faiss_index` is the FAISS index itself, whose positions count rows in the order they were added; `quantizer` the
    fitted quantizer or None; `ids` (n,) the users' ids or None for 0, 1, 2, ...; `kept` the exact rows beside the codes
    or None.

    >>> import numpy as np
    >>> X = np.eye(4, dtype=np.float32)
    >>> scores, ids = Index.build(X, ids=["a", "b", "c", "d"]).search(X[:2], k=1)
    >>> ids.tolist(), scores.tolist()
    ([['a'], ['b']], [[0.0], [0.0]])
    """

    def __init__(self, faiss_index: Any, d: int, metric: str, quantizer: Any, kept: KeptVectors | None) -> None:
        self.faiss_index = faiss_index
        self.n_features = d
        self.metric = metric
        self.quantizer = quantizer
        self.ids: np.ndarray | None = None
        self.kept = kept

    @classmethod
    def empty(
        cls,
        d: int,
        quantizer: Any = None,
        metric: str = "l2",
        *,
        keep_vectors: bool = False,
        fast_scan: bool | None = None,
        n_probe: int | None = None,
    ) -> Self:
        """An index without rows, for vectors of width d; arguments as in `build`, the quantizer already fitted."""
        check_choice(metric, "metric", METRICS)
        if quantizer is None:
            if metric == "hamming":
                raise ValueError("metric='hamming' needs a quantizer that gives bits, for example nk.ITQ(n_bits=64)")
            inner = faiss.IndexFlat(d, faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT)
        elif metric == "hamming":
            inner = faiss.IndexBinaryFlat(8 * n_bytes(quantizer.n_bits))
        else:
            if fast_scan is None:
                fast_scan = quantizer.codebooks_.shape[1] == 16
            inner = quantizer.to_faiss("l2" if metric == "l2" else "ip", fast_scan=fast_scan)
            lists = inverted_file(inner)
            if lists is not None:
                lists.nprobe = min(lists.nlist, n_probe or max(8, lists.nlist // 16))
        return cls(inner, d, metric, quantizer, KeptVectors() if keep_vectors else None)

    @classmethod
    def build(
        cls,
        X: Any,
        quantizer: Any = None,
        ids: Any = None,
        metric: str = "l2",
        *,
        keep_vectors: bool = False,
        fast_scan: bool | None = None,
        n_probe: int | None = None,
        callback: Progress | None = None,
    ) -> Self:
        """Index the rows X (n, d).

        quantizer: None for exact search, a ProductQuantizer for bytes, a hasher (with metric="hamming") for bits, which
            are searched by Hamming distance always (spherical hashing has another in its own `search`). One that is
            not fitted is cloned and fitted on X; the fitted one is `index.quantizer`.
        ids: (n,) integers or strings, each once; None for 0, 1, 2, ...
        metric: "l2", "ip", "cosine" or "hamming".
        keep_vectors: keep the exact rows too, so that `search(..., oversample=...)` can re-rank by them.
        fast_scan: FAISS's faster search of 4-bit codes, whose distances are rounded; None: where n_centroids = 16.
        n_probe: inverted lists visited by a search; None for a sixteenth of them, at least 8.
        callback(rows_done, {"total": n}) follows the adding.
        """
        check_choice(metric, "metric", METRICS)
        X = check_vectors(X)
        if quantizer is not None:
            quantizer = _fitted(quantizer, normalised(X) if metric == "cosine" else X)
        index = cls.empty(
            X.shape[1], quantizer, metric, keep_vectors=keep_vectors, fast_scan=fast_scan, n_probe=n_probe
        )
        ids = None if ids is None else identifiers.joined(np.empty(0, np.int64), identifiers.check_ids(ids, len(X)))
        index._append(X, ids, callback)
        return index

    def __len__(self) -> int:
        return int(self.faiss_index.ntotal)

    def __repr__(self) -> str:
        return f"Index({len(self)} rows of {self.n_features}, metric={self.metric!r}, quantizer={self.quantizer!r})"

    @property
    def bytes_per_vector(self) -> int:
        """Size of one row's code, ids and kept vectors not counted."""
        index = self.faiss_index
        return int(index.d // 8 if self.metric == "hamming" else index.sa_code_size())

    def add(self, X: Any, ids: Any = None, *, callback: Progress | None = None) -> Self:
        """Add rows X (n, d); `ids` are needed where the index has ids, and refused where it counts 0, 1, 2, ..."""
        X = check_vectors(X, n_features=self.n_features)
        if len(self) and (ids is None) != (self.ids is None):
            state = "has no ids of its own" if self.ids is None else "names its rows by ids"
            raise ValueError(f"ids is {'missing' if ids is None else 'given'}, but this index {state}; do as it does")
        if ids is not None:
            old = np.empty(0, np.int64) if self.ids is None else self.ids
            ids = identifiers.joined(old, identifiers.check_ids(ids, len(X)))
        self._append(X, ids, callback)
        return self

    def _append(self, X: np.ndarray, ids: np.ndarray | None, callback: Progress | None) -> None:
        for first in range(0, len(X), _CHUNK):
            chunk = X[first : first + _CHUNK]
            self._add_codes(normalised(chunk) if self.metric == "cosine" else chunk)
            if callback is not None:
                callback(first + len(chunk), {"total": len(X)})
        self.ids = ids
        if self.kept is not None:
            self.kept.append(X)

    def _add_codes(self, X: np.ndarray) -> None:
        """Add rows in such a way that each gets the code that `quantizer.encode` gives it, in any batch."""
        if self.metric == "hamming":
            self.faiss_index.add(self.quantizer.encode(X))
        elif isinstance(self.quantizer, ProductQuantizer):
            self.quantizer.add_to(self.faiss_index, X)
        else:
            self.faiss_index.add(np.ascontiguousarray(X, np.float32))

    def merge(self, other: Self) -> Self:
        """Add the rows of another index of the same quantizer behind these; `other` is empty afterwards.

        For indexes without ids of their own, such as the parts that several processes make.
        """
        if any(index.ids is not None or index.kept is not None for index in (self, other)):
            raise ValueError("an index with ids or kept vectors cannot be merged; merge first, then set `ids`")
        if self.metric == "hamming":  # which FAISS cannot merge
            codes = faiss.vector_to_array(other.faiss_index.xb)
            self.faiss_index.add(codes.reshape(-1, self.bytes_per_vector))
            other.faiss_index.reset()
            return self
        shift = 0 if self.n_probe is None else len(self)  # only an inverted file writes down the rows' numbers
        self.faiss_index.merge_from(other.faiss_index, shift)
        return self

    @property
    def n_probe(self) -> int | None:
        """Lists of the inverted file that a search visits, None where there is no inverted file; may be set."""
        lists = None if self.metric == "hamming" else inverted_file(self.faiss_index)
        return None if lists is None else int(lists.nprobe)

    @n_probe.setter
    def n_probe(self, count: int) -> None:
        lists = None if self.metric == "hamming" else inverted_file(self.faiss_index)
        if lists is None:
            raise ValueError("n_probe is for an inverted file, and this index has none; make it with coarse cells")
        lists.nprobe = check_integer(count, "n_probe", low=1, high=lists.nlist)

    def search(
        self,
        Q: Any,
        k: int = 10,
        *,
        oversample: float | None = None,
        asymmetric: bool = False,
        callback: Progress | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest rows of each query Q (q, d): (scores, ids), both (q, min(k, len(self))), nearest first.

        oversample: take `oversample * k` candidates by their codes and re-rank them by the exact vectors, which
            `keep_vectors=True` kept; the scores are then exact (squared L2 distances where the metric is "hamming").
        asymmetric: for bits, keep the queries real: scores are inner products with the signs, larger is nearer.
        callback(queries_done, {"total": q}) follows the search.

        An inverted file may visit fewer than k rows: what is missing has id -1 (or "") and an infinite score.
        """
        Q = check_vectors(Q, name="Q", n_features=self.n_features)
        k = min(check_integer(k, "k", low=1), len(self))
        if oversample is not None and self.kept is None:
            raise ValueError("oversample needs the exact vectors; build the index with keep_vectors=True")
        if oversample is not None and not oversample >= 1:
            raise ValueError(f"oversample is {oversample!r}; it must be at least 1, for example 4")
        if asymmetric and not hasattr(self.quantizer, "projection_"):
            raise ValueError("asymmetric needs metric='hamming' and a linear hasher, for example nk.ITQ(n_bits=64)")
        if k == 0:
            return np.empty((len(Q), 0), np.float32), identifiers.named(np.empty((len(Q), 0), np.int64), self.ids)
        parts = []
        for first in range(0, len(Q), _CHUNK // 16):
            chunk = Q[first : first + _CHUNK // 16].astype(np.float32)
            wanted = k if oversample is None else min(len(self), int(np.ceil(k * oversample)))
            chunk = normalised(chunk) if self.metric == "cosine" else chunk
            found = self._candidates(chunk, wanted, asymmetric)
            if oversample is not None and self.kept is not None:
                found = rescore(chunk, found[1], self.kept, k, "l2" if self.metric == "hamming" else self.metric)
            parts.append(found)
            if callback is not None:
                callback(first + len(chunk), {"total": len(Q)})
        scores, positions = (np.concatenate(part) for part in zip(*parts, strict=True))
        return scores, identifiers.named(positions, self.ids)

    def _candidates(self, Q: np.ndarray, k: int, asymmetric: bool) -> tuple[np.ndarray, np.ndarray]:
        """Scores and positions (q, k) by the codes."""
        if asymmetric:
            codes = faiss.vector_to_array(self.faiss_index.xb).reshape(len(self), -1)
            return self.quantizer.search(Q, codes, k, asymmetric=True)
        if self.metric == "hamming":
            return self.faiss_index.search(self.quantizer.encode(Q), k)
        scores, positions = self.faiss_index.search(Q, k)
        scores[positions < 0] = np.inf if self.metric == "l2" else -np.inf  # FAISS fills up with the largest float
        return scores, positions

    def save(self, path: str | os.PathLike) -> None:
        """Write a folder: config.json, index.faiss, arrays.safetensors, and where there are any the quantizer's
        own folder and the kept rows in vectors.npy.

        It appears whole or not at all. `index.faiss` opens with plain `faiss.read_index` (`read_index_binary` for
        bits) and answers with the same ids where they are integers.
        """
        config: dict[str, Any] = {"metric": self.metric, "n_features": self.n_features, "n_rows": len(self)}
        arrays = {} if self.ids is None else pack_ids("row", self.ids)
        with saving_folder(path, "index", config) as folder:
            write_faiss(self._with_integer_ids(), folder / "index.faiss")
            write_arrays(folder / "arrays.safetensors", arrays)
            if self.quantizer is not None:
                self.quantizer.save(folder / "quantizer")
            if self.kept is not None:
                self.kept.save(folder / "vectors.npy")

    def _with_integer_ids(self) -> Any:
        if self.ids is None or self.ids.dtype.kind != "i":
            return self.faiss_index
        index = self.faiss_index
        if self.metric == "hamming":  # a map wants an empty index at first: it gets a stand-in, then the real one
            wrapped = faiss.IndexBinaryIDMap(faiss.IndexBinaryFlat(index.d))
        else:
            wrapped = faiss.IndexIDMap(faiss.IndexFlat(index.d, index.metric_type))
        wrapped.index = index
        faiss.copy_array_to_vector(self.ids, wrapped.id_map)
        wrapped.ntotal = index.ntotal
        return wrapped

    @classmethod
    def load(cls, path: str | os.PathLike, *, verify: bool = True) -> Self:
        """Read a folder that `save` wrote. Kept vectors are memory-mapped, not read.

        All files are compared with the checksums in the folder's manifest, kept vectors block by block when they are
        first used; `verify=False` compares lengths only. While another process saves there, it is the old index or the
        new. Raises FileNotFoundError or ValueError for a folder that is missing, damaged, or of a newer format.
        """
        with nullcontext() if verify else without_verification():
            return one_version(path, cls._read)

    @classmethod
    def _read(cls, path: Path) -> Self:
        config = read_config(path, "index")
        binary = config["metric"] == "hamming"
        inner = read_faiss(path / "index.faiss", binary=binary)
        arrays = read_arrays(path / "arrays.safetensors")
        if isinstance(inner, faiss.IndexIDMap | faiss.IndexBinaryIDMap):
            inner = _unwrapped(inner)
        if inner.ntotal != config["n_rows"]:
            raise ValueError(f"{path} holds {inner.ntotal} rows, config.json says {config['n_rows']}; it is damaged")
        quantizer = _read_quantizer(path / "quantizer") if (path / "quantizer").is_dir() else None
        file = path / "vectors.npy"
        kept = KeptVectors.load(file, inner.ntotal, config["n_features"]) if file.exists() else None
        self = cls(inner, config["n_features"], config["metric"], quantizer, kept)
        self.ids = unpack_ids("row", arrays) if arrays else None
        return self


def _fitted(quantizer: Any, X: np.ndarray) -> Any:
    try:
        check_is_fitted(quantizer)
    except NotFittedError:
        return clone(quantizer).fit(X)
    return quantizer


def _unwrapped(wrapped: Any) -> Any:
    """A copy of what the map holds: an owner changed from Python (`this.own`) crashes at some later collection."""
    if isinstance(wrapped, faiss.IndexBinaryIDMap):
        return faiss.clone_binary_index(faiss.downcast_IndexBinary(wrapped.index))
    return faiss.clone_index(faiss.downcast_index(wrapped.index))


def _read_quantizer(path: Path) -> Any:
    kinds = {"product quantizer": ProductQuantizer.load, "hasher": hashing.load}
    kind = read_config(path)["kind"]
    return kinds[check_choice(kind, f"kind in {path / 'config.json'}", kinds)](path)
