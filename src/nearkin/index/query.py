"""Queries of an index: candidates by their codes, without excluded vectors, rescored by kept vectors."""

# pyright: reportConstantRedefinition=false

from dataclasses import dataclass
from typing import cast

import faiss
import numpy as np

from nearkin._check import check_real
from nearkin._exact import nearest, nearest_of_parts
from nearkin._faiss import FaissIndex, byte_codes
from nearkin.contracts import BitCodes, Callback, LinearBits, Quantizer
from nearkin.index import faiss_index, searching
from nearkin.index.identifiers import Found, Selection
from nearkin.index.kept_vectors import KeptVectors, rescore
from nearkin.index.searching import normalised
from nearkin.linalg.norms import Norms

_QUERIES = 4_096  # answered at a time
_ANSWERS = 1 << 22  # sought at a time
_NUMBERS = 1 << 20  # of allowed vectors copied at a time
_DEPTH, _DEEPER = 64, 4  # answers first sought within a radius, and the factor where these are not all


@dataclass(frozen=True, eq=False)
class Query:
    """How the vectors of an index are searched. `quantizer` of bits alone; `norms` of vectors, `kept` vectors, or None;
    `oversample` and `asymmetric` as in `Index.search`. ValueError where the index has no such search."""

    faiss_index: FaissIndex
    metric: str
    quantizer: Quantizer | None
    norms: Norms | None
    kept: KeptVectors | None
    searched: searching.Kept
    oversample: float | None = None
    asymmetric: bool = False

    def __post_init__(self) -> None:
        if self.oversample is not None:
            check_real(self.oversample, "oversample", low=1)
            if self.kept is None:
                raise ValueError("oversample needs kept vectors; build the index with keep_vectors=True")
        if self.asymmetric and not isinstance(self.quantizer, LinearBits):
            raise ValueError("asymmetric needs metric='hamming' and a linear hasher, for example nk.ITQ(n_bits=64)")

    @property
    def by_distance(self) -> bool:
        """Whether smaller scores are nearer."""
        if self.metric == "hamming":
            return self.oversample is not None or not self.asymmetric
        return self.metric == "l2"

    def nearest(self, Q: np.ndarray, k: int, selection: Selection, callback: Callback | None = None) -> Found:
        """Scores and positions (q, min(k, n)) of the vectors nearest to queries Q (q, d), or (q, bytes) uint8 of
        bits."""
        k, done = min(k, self.faiss_index.ntotal), 0
        if not len(Q) or not k:
            return np.empty((len(Q), k), np.float32), np.empty((len(Q), k), np.int64)
        numbers, parts = list[np.ndarray](), list[Found]()
        for queries, allowed, more in selection.chunks(k, _QUERIES, _ANSWERS):
            numbers.append(queries)
            parts.append(self._some(Q[queries], k, selection, queries, allowed, more))
            done += len(queries)
            if callback is not None:
                callback(done, {"total": len(Q)})
        order = np.argsort(np.concatenate(numbers))
        scores, positions = (np.concatenate(part)[order] for part in zip(*parts, strict=True))
        return scores, positions

    def within(
        self, Q: np.ndarray, r: float, selection: Selection, callback: Callback | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Limits (q + 1,), scores (m,) and positions (m,) of the vectors nearer than r. Depths of a search are tried
        until at most half of its answers are."""
        n, done, pending, depth = self.faiss_index.ntotal, 0, np.arange(len(Q)), _DEPTH
        owners, parts = [pending[:0]], [(np.empty(0, np.float32), pending[:0])]
        while len(pending) and n:
            step, again = max(1, _ANSWERS // depth), [pending[:0]]
            for some in (pending[first : first + step] for first in range(0, len(pending), step)):
                scores, positions = self.nearest(Q[some], depth, selection.take(some))
                near = (scores < r if self.by_distance else scores > r) & (positions >= 0)
                more = (near.sum(axis=1) > depth // 2) & (positions[:, -1] >= 0) & (depth < n)
                near[more] = False
                owners.append(some[np.nonzero(near)[0]])
                parts.append((scores[near], positions[near]))
                again.append(some[more])
                done += int((~more).sum())
                if callback is not None:
                    callback(done, {"total": len(Q)})
            pending, depth = np.concatenate(again), _DEEPER * depth
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        scores, positions = (np.concatenate(part[len(parts) > 1 :])[order] for part in zip(*parts, strict=True))
        return np.searchsorted(owner[order], np.arange(len(Q) + 1)), scores, positions

    def _some(
        self, Q: np.ndarray, k: int, selection: Selection, queries: np.ndarray, allowed: np.ndarray | None, more: int
    ) -> Found:
        """Scores and positions (q, k) for Q (q, d), these `queries` of the selection; `more` may have to be dropped."""
        if Q.dtype != np.uint8:
            Q = normalised(Q) if self.metric == "cosine" else Q.astype(np.float32, copy=False)
        n = self.faiss_index.ntotal
        wanted = k if self.oversample is None else int(min(n, np.ceil(k * self.oversample)))
        scores, positions = self.candidates(Q, min(n, wanted + more), allowed)
        scores, positions = selection.left(queries, scores, positions, wanted, self._missing(scores))
        if self.oversample is None or self.kept is None:
            return scores, positions
        return rescore(Q, positions, self.kept, k, "l2" if self.metric == "hamming" else self.metric)

    def _missing(self, scores: np.ndarray) -> float:
        """The score of a place without an answer among candidates."""
        if scores.dtype.kind == "i":
            return np.iinfo(np.int32).max
        return np.inf if self.metric == "l2" else -np.inf

    def candidates(self, Q: np.ndarray, k: int, allowed: np.ndarray | None = None) -> Found:
        """Scores and positions (q, k) without rescoring, of queries (q, d) float32, of norm 1 for "cosine", or of bits
        (q, bytes) uint8; of the vectors at sorted positions `allowed` (m,) or of all."""
        if self.metric != "hamming":
            scan = self.searched.scan(cast(faiss.Index, self.faiss_index))
            if isinstance(scan.inner, faiss.IndexFlat):
                return self._exact(scan, Q, k, allowed)
            return searching.nearest(scan, Q, k, self.norms, allowed)
        codes, index = faiss_index.flat_codes(self.faiss_index), self.faiss_index
        if allowed is not None:  # the allowed codes alone, filled up to k places
            codes, index = codes[allowed], faiss.IndexBinaryFlat(index.d)
            index.add(codes)
        found = min(k, len(codes))
        if self.asymmetric:
            scores, numbers = cast(LinearBits, self.quantizer).search(Q, codes, found, asymmetric=True)
        else:
            asked = Q if Q.dtype == np.uint8 else cast(BitCodes, self.quantizer).encode(Q)
            scores, numbers = index.search(asked, found)
        return self._filled(scores, numbers if allowed is None else allowed[numbers], k)

    def _exact(self, scan: searching.Scan, Q: np.ndarray, k: int, allowed: np.ndarray | None) -> Found:
        """`candidates` of an exact index."""
        rows, step = byte_codes(scan.inner).view(np.float32), max(1, _NUMBERS // scan.inner.d)
        if allowed is None:
            longest = scan.longest if self.metric == "ip" else None
            scores, positions = nearest(rows, Q, k, self.metric, longest)
        else:
            parts = (allowed[first : first + step] for first in range(0, len(allowed), step))
            scores, positions = nearest_of_parts(((some, rows[some]) for some in parts), Q, k, self.metric)
        return self._filled(scores.astype(np.float32), positions, k)

    def _filled(self, scores: np.ndarray, positions: np.ndarray, k: int) -> Found:
        """Scores and positions (q, k), the last places without an answer."""
        places = (0, 0), (0, k - scores.shape[1])
        scores = np.pad(scores, places, constant_values=self._missing(scores))
        return scores, np.pad(positions, places, constant_values=-1)
