"""Product residual quantization: a rotated row is cut into parts, and each part is coded by a sum of centroids."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Self

import faiss
import numpy as np

from nearkin._check import check_choice, check_integer
from nearkin._faiss import METRIC_TYPES
from nearkin._types import Seed
from nearkin.contracts import Callback
from nearkin.linalg.procrustes import nearest_orthogonal
from nearkin.quantization import additive
from nearkin.quantization.additive_estimator import AbstractAdditiveQuantizer, inverted
from nearkin.quantization.faiss_bridge import code_bits, front_rotation
from nearkin.quantization.principal import principal_axes
from nearkin.quantization.product import ProductQuantizer


@dataclass(eq=False, repr=False)
class ProductResidualQuantizer(AbstractAdditiveQuantizer):
    """Cut rotated rows into `n_splits` parts and code each by a sum of `n_codebooks` centroids.

    Between product (`n_codebooks=1`) and residual codes (`n_splits=1`) in everything: neighbours kept, training,
    encoding. The rotation starts as a product quantizer's of as many parts, and is then turned to the codes
    (Procrustes) between refits of the codebooks.

    Parameters
    ----------
    n_splits: parts; n_codebooks: M of each. With 256 centroids a code has n_splits * n_codebooks bytes.
    rotation: "procrustes", or None for the axes as they are.
    n_centroids, beam_size, norm_bits, max_iter, max_points_per_centroid, n_lists, random_state: as those of
        `ResidualQuantizer`.

    Attributes
    ----------
    codebooks_ (n_splits, M, K, d'/n_splits) float32, rotation_ (d, d') float32, d' > d only where n_splits does not
    divide d, norms_ (2,), coarse_centroids_ (n_lists, d) or None, history_, normalized_, n_features_in_.

    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> prq = ProductResidualQuantizer(2, 2, n_centroids=16, random_state=0).fit(X)
    >>> prq.encode(X).shape
    (500, 2)
    """

    KIND = "product residual quantizer"

    n_splits: int = 2
    n_codebooks: int = 4
    n_centroids: int = 256
    rotation: str | None = "procrustes"
    _: KW_ONLY
    beam_size: int = 5
    norm_bits: int = 0
    max_iter: int = 8
    max_points_per_centroid: int = 256
    n_lists: int = 0
    random_state: Seed = None

    def _learn(self, X: np.ndarray, seed: int, callback: Callback) -> tuple[np.ndarray, np.ndarray]:
        check_integer(self.n_splits, "n_splits", low=1, high=X.shape[1])
        check_integer(self.n_codebooks, "n_codebooks", low=1)
        check_choice(self.rotation, "rotation", (None, "procrustes"))
        turns = self.rotation is not None and self.n_splits > 1
        K, start = self.n_centroids, "procrustes" if turns else None
        first = ProductQuantizer(self.n_splits, K, start, random_state=seed, max_iter=10 if turns else 1)
        R = first.fit(X).rotation_
        books = [additive.start(Z, self.n_codebooks, K, seed + m) for m, Z in self._parts(X @ R)]
        ends: list[tuple[float, np.ndarray, np.ndarray]] = []
        for index in range(self.max_iter):
            at_an_end, goes_on = additive.at_an_end(index, self.max_iter), index + 1 < self.max_iter
            decoded, error, end = [], 0.0, []
            for m, Z in self._parts(X @ R):
                codes = additive.encode(Z, books[m], self.beam_size if at_an_end else additive.TRAIN_BEAM)
                error += float(np.square(Z - additive.decode(codes, books[m]), dtype=np.float64).sum()) / len(X)
                if at_an_end:
                    end.append(additive.settled(Z, codes, books[m], self.beam_size))
                if goes_on:
                    axes = principal_axes(Z)[0]
                    books[m] = additive.refit(Z @ axes, codes, books[m] @ axes, additive.SHRINK) @ axes.T
                    decoded.append(additive.decode(codes, books[m]))
            if at_an_end:
                ends.append((sum(left for left, _ in end), R, np.stack([book for _, book in end])))
            if turns and goes_on:
                R = nearest_orthogonal((X.T @ np.hstack(decoded)).astype(np.float64)).astype(np.float32)
            callback(index + 1, {"objective": error, "distortion": error, "total": self.max_iter})
        if not ends:
            return R, np.stack(books)
        return ends[additive.end_kept([error for error, _, _ in ends])][1:]

    def _parts(self, Z: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Number and columns of each part of rotated rows Z (n, d')."""
        return enumerate(map(np.ascontiguousarray, np.split(Z, self.n_splits, axis=1)))

    @classmethod
    def from_faiss(cls, index: faiss.Index) -> Self:
        """The quantizer inside a trained `faiss.IndexProductResidualQuantizer`, rotated or not; TypeError for another.

        `beam_size` and the least and largest norm are those of the index.
        """
        R, inner = front_rotation(index)
        if not isinstance(inner, faiss.IndexProductResidualQuantizer | faiss.IndexIVFProductResidualQuantizer):
            raise TypeError(f"index holds a faiss.{type(inner).__name__}; it must be an IndexProductResidualQuantizer")
        parts = [faiss.downcast_AdditiveQuantizer(inner.prq.subquantizer(m)) for m in range(inner.prq.nsplits)]
        M, bits = parts[0].M, int(faiss.vector_to_array(parts[0].nbits)[0])
        rotation = None if R is None else "procrustes"
        made = cls(len(parts), M, 2**bits, rotation, beam_size=parts[0].max_beam_size)
        made.codebooks_ = np.stack([faiss.vector_to_array(part.codebooks).reshape(M, 2**bits, -1) for part in parts])
        made.norms_ = np.array([inner.prq.norm_min, inner.prq.norm_max], np.float32)
        made._take(R, inner)
        return made

    def _inner(self, metric: str = "l2") -> faiss.Index:
        splits, M, K, width = self.codebooks_.shape
        shape, lists = (splits, M, code_bits(K), METRIC_TYPES[metric], self._search_type(metric)), self._lists(metric)
        if lists is None:
            index = faiss.IndexProductResidualQuantizer(splits * width, *shape)  # pyright: ignore[reportCallIssue]
        else:
            index = inverted(faiss.IndexIVFProductResidualQuantizer, lists, *shape)
        for m, codebooks in enumerate(self.codebooks_):
            additive.fill(faiss.downcast_AdditiveQuantizer(index.prq.subquantizer(m)), codebooks, self.beam_size)
        whole = np.concatenate([books.ravel() for books in self.codebooks_])
        faiss.copy_array_to_vector(whole, index.prq.codebooks)
        index.prq.norm_min, index.prq.norm_max = map(float, self.norms_)
        index.prq.is_trained = index.is_trained = True
        return index
