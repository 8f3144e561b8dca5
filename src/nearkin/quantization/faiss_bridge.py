"""Between a product quantizer's arrays and FAISS: build a trained, empty index; read a trained one back."""

from typing import Any

import faiss
import numpy as np

from nearkin._faiss import METRIC_TYPES, linear_transform
from nearkin.linalg.batch_free import nearest
from nearkin.quantization.codebooks import calming_scale

MAX_BITS = 16  # of one code, FAISS's own limit
_WIDE = 16  # least columns of a subspace for which FAISS's encoder multiplies all rows at once
_AFAR = 100  # times their variance: squares of centroids' means from which float32 loses digits that rank
_FAR = np.float32(1e15)  # coordinate of a centroid that is never chosen; its square still fits float32


def code_bits(n_centroids: int) -> int:
    return max(1, (n_centroids - 1).bit_length())


def compute_codes(Z: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    """Codes (n, M) of rotated vectors Z (n, d) under codebooks (M, K, d/M): uint8 up to 8 bits, uint16 above. By
    FAISS's own encoder where subspaces are narrow. For wide ones the rounding of its product depends on the batch, so
    ties within float32's error are decided in float64."""
    M, K, width = codebooks.shape
    dtype, size = np.uint8 if K <= 256 else np.uint16, calming_scale(codebooks)
    if size != 1:
        Z, codebooks = Z * np.float32(size), codebooks * np.float32(size)
    if width >= _WIDE:
        parts = (nearest(Z[:, m * width : (m + 1) * width], centroids) for m, centroids in enumerate(codebooks))
        return np.stack([part.astype(dtype) for part in parts], axis=1)
    codec = faiss.ProductQuantizer(M * width, M, code_bits(K))
    faiss.copy_array_to_vector(_padded(codebooks).ravel(), codec.centroids)
    packed = codec.compute_codes(np.ascontiguousarray(Z, np.float32))
    return faiss.unpack_bitstrings(packed, codec.M, codec.nbits).astype(dtype)


def packed(codes: np.ndarray, n_subspaces: int, bits: int) -> np.ndarray:
    """Codes of `ProductQuantizer.encode` as FAISS stores them: the list's bytes unchanged, then M codes of `bits`."""
    if bits == 8:
        return codes
    lists, codes = codes[:, :-n_subspaces], codes[:, -n_subspaces:]
    return np.hstack([lists.astype(np.uint8), faiss.pack_bitstrings(codes.astype(np.int32), bits)])


def empty_index(
    rotation: np.ndarray | None, codebooks: np.ndarray, coarse_centroids: np.ndarray | None, metric: str
) -> faiss.Index:
    """A trained, empty index: [rotation ->] PQ or IVF + PQ; `coarse_centroids` (L, d) are in the rotated space.

    FAISS expands squares in its tables, so centroids far from 0 are about their means there, and so are queries."""
    M, K, width = codebooks.shape
    d, bits, code, origin = M * width, code_bits(K), METRIC_TYPES[metric], None
    if coarse_centroids is None:
        means = codebooks.mean(axis=1)
        if metric == "l2" and np.square(means).sum() > _AFAR * codebooks.var(axis=1, dtype=np.float64).sum():
            origin, codebooks = means.ravel(), codebooks - means[:, None]
            rotation = np.eye(d, dtype=np.float32) if rotation is None else rotation
        if width == 2 and bits < 3:
            raise ValueError(
                f"n_centroids is {K} and subspaces have 2 columns; FAISS searches such codes from 5 centroids on: give "
                "n_centroids=8, another n_subspaces, or n_lists"
            )
        index = faiss.IndexPQ(d, M, bits, code)
    else:
        index = with_lists(faiss.IndexIVFPQ, coarse_centroids, metric, M, bits, code)
    faiss.copy_array_to_vector(_padded(codebooks).ravel(), index.pq.centroids)
    index.is_trained = True
    if coarse_centroids is not None and metric == "l2":
        index.precompute_table()
    if rotation is None:
        return index
    return behind_rotation(rotation, index, origin)


def with_lists(kind: type[Any], centroids: np.ndarray, metric: str, *shape: int) -> faiss.IndexIVF:
    """An inverted file of FAISS's class `kind` with lists of centroids (L, d') searched by the metric; `shape` are the
    arguments of `kind` after the number of lists."""
    lists = faiss.IndexFlat(centroids.shape[1], METRIC_TYPES[metric])
    lists.add(np.ascontiguousarray(centroids, np.float32))
    index = kind(lists, lists.d, lists.ntotal, *shape)
    index.own_fields = True
    lists.this.disown()  # the index deletes them
    return index


def lists_of(index: faiss.Index, rotation: np.ndarray | None) -> np.ndarray | None:
    """Centroids (L, d) of an index's lists before the rotation (d, d'), None without lists."""
    if not isinstance(index, faiss.IndexIVF):
        return None
    if not index.by_residual:
        raise ValueError("index has by_residual=False; only an inverted file of residuals' codes can be read")
    centroids = index.quantizer.reconstruct_n(0, index.nlist)
    return centroids if rotation is None else centroids @ rotation.T


def behind_rotation(rotation: np.ndarray, index: faiss.Index, origin: np.ndarray | None = None) -> faiss.Index:
    """The index of vectors X (n, d) whose rotated vectors X R, R (d, d'), less `origin` (d',), `index` holds.

    The result owns `index`.
    """
    transform = linear_transform(rotation, origin)
    transform.is_orthonormal = True  # FAISS may then reconstruct through the transpose
    chain = faiss.IndexPreTransform(transform, index)
    chain.own_fields = True
    for part in (transform, index):  # the chain deletes them
        part.this.disown()
    return chain


def front_rotation(index: faiss.Index) -> tuple[np.ndarray | None, faiss.Index]:
    """The rotation (d, d') in front of a trained index, None without one, and the index behind it."""
    index = _without_ids(index)
    if not index.is_trained:
        raise ValueError("the FAISS index is not trained; call index.train(X) first")
    if not isinstance(index, faiss.IndexPreTransform):
        return None, index
    return _chain_matrix(index), _without_ids(index.index)


def _without_ids(index: faiss.Index) -> faiss.Index:
    index = faiss.downcast_index(index)
    return faiss.downcast_index(index.index) if isinstance(index, faiss.IndexIDMap) else index


def read_index(index: faiss.Index) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Codebooks (M, K, d/M) of a trained FAISS index, and, where it has them, its rotation (d, d) and coarse centroids
    (L, d), which FAISS stores rotated and which are rotated back here.

    Understands PQ and IVF + PQ, behind any chain of square linear transforms without a bias.
    """
    rotation, index = front_rotation(index)
    if isinstance(index, faiss.IndexPreTransform):
        raise TypeError("index is a chain within a chain of transforms; it must be one IndexPreTransform")
    kinds = (faiss.IndexPQ, faiss.IndexIVFPQ, faiss.IndexPQFastScan, faiss.IndexIVFPQFastScan)
    if not isinstance(index, kinds):
        raise TypeError(f"index is a faiss.{type(index).__name__}; it must be a PQ or IVF + PQ index, rotated or not")
    codec = index.pq
    codebooks = faiss.vector_to_array(codec.centroids).reshape(codec.M, codec.ksub, codec.dsub)
    used = ~(codebooks == _FAR).all((0, 2))
    return np.ascontiguousarray(codebooks[:, used]), rotation, lists_of(index, rotation)


def _chain_matrix(index: faiss.IndexPreTransform) -> np.ndarray:
    rotation = np.eye(index.d, dtype=np.float32)
    for i in range(index.chain.size()):
        part = faiss.downcast_VectorTransform(index.chain.at(i))
        if not isinstance(part, faiss.LinearTransform):
            raise TypeError(f"index holds a faiss.{type(part).__name__}; its transforms must be linear")
        if part.d_in > part.d_out:
            raise ValueError(f"index maps {part.d_in} to {part.d_out} dimensions; its transform must be a rotation")
        if part.have_bias and faiss.vector_to_array(part.b).any():
            raise ValueError("index has a transform with a bias; it must be a rotation alone")
        rotation = rotation @ faiss.vector_to_array(part.A).reshape(part.d_out, part.d_in).T
    if np.abs(rotation @ rotation.T - np.eye(index.d)).max() > 1e-3:
        raise ValueError("index has a linear transform that is not orthogonal; distances would not be kept")
    return np.ascontiguousarray(rotation)


def _padded(codebooks: np.ndarray) -> np.ndarray:
    """Codebooks (M, K, d/M) with far centroids up to FAISS's power of two; equal ones would tie differently by CPU."""
    M, K, width = codebooks.shape
    filled = np.full((M, 1 << code_bits(K), width), _FAR, np.float32)
    filled[:, :K] = codebooks
    return filled
