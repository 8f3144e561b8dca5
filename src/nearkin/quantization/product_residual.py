"""Product residual quantization: a rotated row is cut into parts, and each part is coded by a sum of centroids."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import faiss
import numpy as np

from nearkin._check import check_choice, check_integer
from nearkin._faiss import METRIC_TYPES
from nearkin._types import Seed
from nearkin.contracts import Callback
from nearkin.quantization import additive
from nearkin.quantization.additive_estimator import AbstractAdditiveQuantizer, inverted
from nearkin.quantization.additive_learning import Learned, learn
from nearkin.quantization.faiss_bridge import code_bits, front_rotation
from nearkin.quantization.product import ProductQuantizer

_PLAIN = faiss.IndexProductResidualQuantizer, faiss.IndexIVFProductResidualQuantizer
_FAST = faiss.IndexProductResidualQuantizerFastScan, faiss.IndexIVFProductResidualQuantizerFastScan


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
    n_centroids, beam_size, norm_bits, max_iter, smoothing, ranking, max_points_per_centroid, n_lists, random_state: as
        those of `ResidualQuantizer`.

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
    max_iter: int = 14
    smoothing: float = 0.75
    ranking: bool | str = True
    max_points_per_centroid: int = 256
    n_lists: int = 0
    random_state: Seed = None

    def _learn(self, X: np.ndarray, asked: np.ndarray | None, seed: int, callback: Callback) -> Learned:
        check_integer(self.n_splits, "n_splits", low=1, high=X.shape[1])
        check_integer(self.n_codebooks, "n_codebooks", low=1)
        check_choice(self.rotation, "rotation", (None, "procrustes"))
        turns = self.rotation is not None and self.n_splits > 1
        start, rounds = ("procrustes", 10) if turns else (None, 1)
        first = ProductQuantizer(self.n_splits, self.n_centroids, start, random_state=seed, max_iter=rounds).fit(X)
        return learn(X, first.rotation_, turns, self._sums(self.n_splits, asked), seed, callback)

    @classmethod
    def from_faiss(cls, index: faiss.Index) -> Self:
        """The quantizer inside a trained `faiss.IndexProductResidualQuantizer`, rotated or not; TypeError for another.

        `beam_size` and the least and largest norm are those of the index.
        """
        R, inner = front_rotation(index)
        if not isinstance(inner, (*_PLAIN, *_FAST)):
            raise TypeError(f"index holds a faiss.{type(inner).__name__}; it must be an IndexProductResidualQuantizer")
        parts = [faiss.downcast_AdditiveQuantizer(inner.prq.subquantizer(m)) for m in range(inner.prq.nsplits)]
        M, bits = parts[0].M, int(faiss.vector_to_array(parts[0].nbits)[0])
        rotation = None if R is None else "procrustes"
        made = cls(len(parts), M, 2**bits, rotation, beam_size=parts[0].max_beam_size)
        made.codebooks_ = np.stack([faiss.vector_to_array(part.codebooks).reshape(M, 2**bits, -1) for part in parts])
        made.norms_ = np.array([inner.prq.norm_min, inner.prq.norm_max], np.float32)
        made._take(R, inner)
        return made

    def _inner(self, metric: str = "l2", *, fast: bool = False) -> faiss.Index:
        splits, M, K, width = self.codebooks_.shape
        shape = splits, M, code_bits(K), METRIC_TYPES[metric], self._search_type(metric, fast)
        (flat, inverse), (codebooks, lists) = _FAST if fast else _PLAIN, self._placed(metric)
        index = flat(splits * width, *shape) if lists is None else inverted(inverse, lists, *shape)
        self._fill(index.prq, codebooks, self.beam_size)
        index.prq.norm_min, index.prq.norm_max = map(float, self.norms_)
        return self._finished(index, fast)

    def _coder(self, codebooks: np.ndarray, widest: int | None = None) -> faiss.AdditiveQuantizer:
        splits, M, K, width = codebooks.shape
        coder = faiss.ProductResidualQuantizer(splits * width, splits, M, code_bits(K))
        self._fill(coder, codebooks, min(self.beam_size, widest or self.beam_size))
        return coder

    def _fill(self, quantizer: faiss.ProductAdditiveQuantizer, codebooks: np.ndarray, beam: int) -> None:
        for m, books in enumerate(codebooks):
            additive.fill(faiss.downcast_AdditiveQuantizer(quantizer.subquantizer(m)), books, beam)
        whole = np.concatenate([books.ravel() for books in codebooks])
        faiss.copy_array_to_vector(whole, quantizer.codebooks)
        quantizer.is_trained = True
