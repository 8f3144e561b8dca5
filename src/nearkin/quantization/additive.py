"""Rows as sums of centroids, one from each codebook: FAISS's training and beam search, and codebooks refitted to codes.

FAISS learns codebook after codebook on what the earlier ones leave. Given the codes, all codebooks together are a least
squares problem, whose normal equations are sums over the rows; coding and refitting alternate, as in k-means. Babenko &
Lempitsky 2014 (additive quantization); Liu, Shao & Lu 2015 (refitting a residual quantizer).
"""

import faiss
import numpy as np
from scipy import sparse

from nearkin.contracts import Callback, ignore

TRAIN_BEAM = 3  # of FAISS's training: wider costs more and, once refitted, ends no better
_SWEEPS = 4  # Gauss-Seidel sweeps over the codebooks for one refit
_TABLES = 4096  # centroids in all up to which FAISS's search by inner products of all pairs pays
_BLOCK = 64  # rows coded at a time


def learn(
    X: np.ndarray, n_codebooks: int, n_centroids: int, beam: int, rounds: int, seed: int, callback: Callback = ignore
) -> np.ndarray:
    """Codebooks (M, K, w) float32 of rows X (n, w) float32: FAISS's start, then `rounds` of coding and refitting.

    `callback(round, record)` hears the distortion of each round before its refit.
    """
    quantizer = faiss.ResidualQuantizer(X.shape[1], n_codebooks, _bits(n_centroids))
    quantizer.train_type, quantizer.max_beam_size = faiss.ResidualQuantizer.Train_default, TRAIN_BEAM
    quantizer.cp.seed, quantizer.cp.min_points_per_centroid = seed & 0x7FFFFFFF, 1
    quantizer.train(np.ascontiguousarray(X))
    shape = (n_codebooks, n_centroids, X.shape[1])
    codebooks = faiss.vector_to_array(quantizer.codebooks).reshape(shape).copy()
    for index in range(rounds):
        codes = encode(X, codebooks, beam)
        error = float(np.square(X - decode(codes, codebooks), dtype=np.float64).sum(axis=1).mean())
        callback(index + 1, {"objective": error, "distortion": error, "total": rounds})
        codebooks = refit(X, codes, codebooks)
    return codebooks


def refit(X: np.ndarray, codes: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    """Codebooks (M, K, w) that leave a smaller ||X - sum_m C_m[codes_m]||^2, by Gauss-Seidel on the normal equations.

    With B (n, M K) the codes as indicators, B^T B C = B^T X: both sides are sums over rows. One codebook's part of
    B^T B is diagonal, so a codebook is solved exactly given the others, and the error cannot rise. A centroid that no
    row chose stays.
    """
    (M, K, width), n = codebooks.shape, len(X)
    places = (codes + K * np.arange(M)).ravel()
    B = sparse.csr_matrix((np.ones(n * M), places, np.arange(0, n * M + 1, M)), shape=(n, M * K))
    pairs, sums = (B.T @ B).tocsr(), B.T @ X.astype(np.float64)
    counts = np.maximum(pairs.diagonal(), 1)[:, None]
    C = codebooks.reshape(M * K, width).astype(np.float64)
    for _ in range(_SWEEPS):
        for first in range(0, M * K, K):
            rows = slice(first, first + K)
            C[rows] += (sums[rows] - pairs[rows] @ C) / counts[rows]
    return C.reshape(codebooks.shape).astype(np.float32)


def encode(X: np.ndarray, codebooks: np.ndarray, beam: int) -> np.ndarray:
    """Codes (n, M) int32 of rows X (n, w) by FAISS's beam search, which keeps the `beam` best sums at each codebook."""
    M, K, width = codebooks.shape
    quantizer = faiss.ResidualQuantizer(width, M, _bits(K))
    fill(quantizer, codebooks, beam)
    return faiss.unpack_bitstrings(quantizer.compute_codes(np.ascontiguousarray(X)), M, _bits(K))


def decode(codes: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    """The sums (n, w) of the centroids that codes (n, M) name."""
    total = codebooks[0][codes[:, 0]]
    for centroids, own in zip(codebooks[1:], codes.T[1:], strict=True):
        total = total + centroids[own]
    return total


def fill(quantizer: faiss.AdditiveQuantizer, codebooks: np.ndarray, beam: int) -> None:
    """Give FAISS's quantizer our codebooks (M, K, w) and the width of its beam."""
    faiss.copy_array_to_vector(np.ascontiguousarray(codebooks, np.float32).ravel(), quantizer.codebooks)
    quantizer.max_beam_size, quantizer.is_trained = beam, True
    if isinstance(quantizer, faiss.ResidualQuantizer) and codebooks.shape[0] * codebooks.shape[1] <= _TABLES:
        quantizer.use_beam_LUT = 1
        quantizer.compute_codebook_tables()


def steady_codes(index: faiss.Index, Z: np.ndarray) -> np.ndarray:
    """FAISS's codes (n, bytes) of rows Z (n, d'), block by block of one size: its products round as the batch falls."""
    n = len(Z)
    padded = np.zeros((n + -n % _BLOCK, Z.shape[1]), np.float32)
    padded[:n] = Z
    parts = [index.sa_encode(padded[first : first + _BLOCK]) for first in range(0, len(padded), _BLOCK)]
    return np.concatenate(parts)[:n]


def _bits(n_centroids: int) -> int:
    return (n_centroids - 1).bit_length()
