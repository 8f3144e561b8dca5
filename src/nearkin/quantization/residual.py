"""Residual quantization: each codebook codes what those before it leave, over all columns."""

from dataclasses import KW_ONLY, dataclass
from typing import Self

import faiss
import numpy as np

from nearkin._check import check_integer
from nearkin._faiss import METRIC_TYPES
from nearkin._types import Seed
from nearkin.contracts import Callback
from nearkin.quantization.additive import fill
from nearkin.quantization.additive_estimator import AbstractAdditiveQuantizer, inverted
from nearkin.quantization.additive_learning import Learned, learn
from nearkin.quantization.faiss_bridge import code_bits, front_rotation

_PLAIN = faiss.IndexResidualQuantizer, faiss.IndexIVFResidualQuantizer
_FAST = faiss.IndexResidualQuantizerFastScan, faiss.IndexIVFResidualQuantizerFastScan


@dataclass(eq=False, repr=False)
class ResidualQuantizer(AbstractAdditiveQuantizer):
    """Code a row by a sum of `n_codebooks` centroids of full width (Chen, Guan & Wang 2010).

    At the bytes of a product quantizer it keeps more neighbours, above all at few bytes; encoding takes tens of times
    longer, and so does search without `norm_bits`. FAISS learns the start and searches the codes by beams; all
    codebooks are then refitted together, a few rounds.

    Parameters
    ----------
    n_codebooks: M. With 256 centroids it is the number of bytes of a code.
    n_centroids: K of every codebook, a power of two.
    beam_size: sums kept at each codebook while a row is encoded; wider is slower and better.
    norm_bits: 0, 4, 8 or 32 bits that are added to a code for the row's norm, with which FAISS searches by "l2" from
        tables, as fast as product codes, instead of decoding. 8 with `n_centroids=16`: by its fast scan, ten times
        faster, unless that keeps fewer neighbours of the training rows, as where lengths differ much.
    max_iter: rounds of refitting.
    smoothing: part of the rows, 0 to 1, that a round replaces by rows drawn between near ones: more serves rows that
        were not learned from, less those that were.
    ranking: code what the order of near rows depends on: errors weigh by how near rows differ, and one more column
        holds how far a row is from its code, which searches by "l2" add. False: the least distortion. "ip": for
        searches by inner product or cosine; errors weigh as the queries are spread, those given to `fit`, else the
        rows. "known": for an index that will hold the rows learned from, searched by "l2"; what codes stand for is
        then moved until distances to those rows rank as they truly do. Other rows lose by that. "known-ip": both.
    max_points_per_centroid: rows used for training, at most, for each of K.
    n_lists: inverted lists; 0 for none. With them the residual to the nearest of `n_lists` coarse centroids is coded, a
        code begins with the number of that list, and a search visits some of the lists.
    random_state: seed, NumPy generator or RandomState.

    Attributes
    ----------
    codebooks_ (1, M, K, d) float32, rotation_ (d, d) the identity, norms_ (2,), coarse_centroids_ (n_lists, d)
    or None, history_, normalized_, n_features_in_.

    >>> X = np.random.default_rng(0).normal(size=(500, 16)).astype(np.float32)
    >>> ResidualQuantizer(n_codebooks=4, n_centroids=16, random_state=0).fit(X).encode(X).shape
    (500, 2)
    """

    KIND = "residual quantizer"

    n_codebooks: int = 8
    n_centroids: int = 256
    _: KW_ONLY
    beam_size: int = 5
    norm_bits: int = 0
    max_iter: int = 18
    smoothing: float = 0.75
    ranking: bool | str = True
    max_points_per_centroid: int = 256
    n_lists: int = 0
    random_state: Seed = None

    def _learn(self, X: np.ndarray, asked: np.ndarray | None, seed: int, callback: Callback) -> Learned:
        check_integer(self.n_codebooks, "n_codebooks", low=1)
        return learn(X, np.eye(X.shape[1], dtype=np.float32), False, self._sums(1, asked), seed, callback)

    @classmethod
    def from_faiss(cls, index: faiss.Index) -> Self:
        """The quantizer inside a trained FAISS index of residual codes, inverted or not; TypeError for any other."""
        rotation, inner = front_rotation(index)  # `index` stays: it owns what `inner` reads
        if not isinstance(inner, (*_PLAIN, *_FAST)):
            raise TypeError(f"index is a faiss.{type(inner).__name__}; it must be an IndexResidualQuantizer")
        bits = set(faiss.vector_to_array(inner.rq.nbits).tolist())
        if len(bits) != 1 or rotation is not None:
            raise ValueError(
                f"index has a rotation or codebooks of {sorted(bits)} bits; it must have none, and one size"
            )
        made = cls(inner.rq.M, 2 ** bits.pop(), beam_size=inner.rq.max_beam_size)
        codebooks = faiss.vector_to_array(inner.rq.codebooks)
        made.codebooks_ = codebooks.reshape(1, made.n_codebooks, made.n_centroids, inner.d).copy()
        made.norms_ = np.array([inner.rq.norm_min, inner.rq.norm_max], np.float32)
        made._take(None, inner)
        return made

    def _inner(self, metric: str = "l2", *, fast: bool = False) -> faiss.Index:
        _, M, K, d = self.codebooks_.shape
        shape = M, code_bits(K), METRIC_TYPES[metric], self._search_type(metric, fast)
        (flat, inverse), (codebooks, lists) = _FAST if fast else _PLAIN, self._placed(metric)
        index = flat(d, *shape) if lists is None else inverted(inverse, lists, *shape)
        index.rq.norm_min, index.rq.norm_max = map(float, self.norms_)
        fill(index.rq, codebooks[0], self.beam_size)
        return self._finished(index, fast)

    def _coder(self, codebooks: np.ndarray, widest: int | None = None) -> faiss.AdditiveQuantizer:
        _, M, K, d = codebooks.shape
        coder = faiss.ResidualQuantizer(d, M, code_bits(K))
        fill(coder, codebooks[0], min(self.beam_size, widest or self.beam_size))
        return coder
