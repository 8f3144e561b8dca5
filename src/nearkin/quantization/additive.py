"""Rows as sums of centroids, one from each codebook: FAISS's training and beam search."""

import faiss
import numpy as np

_START_BEAM, _START_KMEANS = 5, 10  # of the start: width of FAISS's beam, iterations of its k-means
_TABLES = 4096  # centroids in all up to which FAISS's search by inner products of all pairs pays
_BUCKETED = range(8, 25)  # beams that the 3 best of 8 buckets of a codebook fill, but for those that gain nothing
_BUCKETS_PAY = 64  # centroids from which FAISS's search by buckets is quicker; it has .02 % more error
_CACHED = 512  # rows whose products with all centroids stay in the cache
_BLOCK = 64  # rows coded at a time


def start(X: np.ndarray, n_codebooks: int, n_centroids: int, seed: int) -> np.ndarray:
    """FAISS's codebooks (M, K, w) of rows X (n, w): k-means of what the ones before leave, on as many candidates of its
    beam as there are rows."""
    quantizer = faiss.ResidualQuantizer(X.shape[1], n_codebooks, _bits(n_centroids))
    quantizer.train_type = faiss.ResidualQuantizer.Train_default
    quantizer.max_beam_size = min(_START_BEAM, n_centroids**n_codebooks)
    quantizer.cp.seed, quantizer.cp.niter, quantizer.cp.min_points_per_centroid = seed & 0x7FFFFFFF, _START_KMEANS, 1
    quantizer.cp.max_points_per_centroid = -(-len(X) // n_centroids)
    quantizer.train(np.ascontiguousarray(X))
    return faiss.vector_to_array(quantizer.codebooks).reshape(n_codebooks, n_centroids, X.shape[1]).copy()


def encode(X: np.ndarray, codebooks: np.ndarray, beam: int) -> np.ndarray:
    """Codes (n, M) int32 of rows X (n, w) by FAISS's beam search, which keeps the `beam` best sums at each codebook."""
    M, K, width = codebooks.shape
    quantizer = faiss.ResidualQuantizer(width, M, _bits(K))
    fill(quantizer, codebooks[None], beam)
    X, codes = np.ascontiguousarray(X), np.empty((len(X), quantizer.code_size), np.uint8)
    for first in range(0, len(X), _CACHED):
        rows = slice(first, first + _CACHED)
        codes[rows] = quantizer.compute_codes(X[rows])
    return faiss.unpack_bitstrings(codes, M, _bits(K))


def decode(codes: np.ndarray, codebooks: np.ndarray) -> np.ndarray:
    """The sums (n, w) of the centroids that codes (n, M) name."""
    total = codebooks[0][codes[:, 0]]
    for centroids, own in zip(codebooks[1:], codes.T[1:], strict=True):
        total = total + centroids[own]
    return total


def parts_of(quantizer: faiss.AdditiveQuantizer) -> list[faiss.AdditiveQuantizer]:
    """The quantizers of the parts of a row, or the one of the whole row; `quantizer` owns them."""
    if not isinstance(quantizer, faiss.ProductAdditiveQuantizer):
        return [quantizer]
    return [faiss.downcast_AdditiveQuantizer(quantizer.subquantizer(m)) for m in range(quantizer.nsplits)]


def fill(quantizer: faiss.AdditiveQuantizer, codebooks: np.ndarray, beam: int) -> None:
    """Give FAISS's quantizer codebooks (splits, M, K, w) and a beam, never wider than there are codes."""
    _, M, K, _ = codebooks.shape
    for part, books in zip(parts_of(quantizer), codebooks, strict=True):
        faiss.copy_array_to_vector(np.ascontiguousarray(books, np.float32).ravel(), part.codebooks)
        part.max_beam_size, part.is_trained = min(beam, K**M), True
        if not isinstance(part, faiss.ResidualQuantizer):
            continue
        part.train_type |= faiss.ResidualQuantizer.Skip_codebook_tables  # else FAISS makes them whenever it reads one
        if beam in _BUCKETED and K >= _BUCKETS_PAY:
            part.approx_topk_mode = faiss.APPROX_TOPK_BUCKETS_B8_D3
        if M * K <= _TABLES:
            part.use_beam_LUT = 1
            part.compute_codebook_tables()
    if isinstance(quantizer, faiss.ProductAdditiveQuantizer):
        faiss.copy_array_to_vector(np.ascontiguousarray(codebooks, np.float32).ravel(), quantizer.codebooks)
        quantizer.is_trained = True


def steady_numbers(quantizer: faiss.AdditiveQuantizer, Z: np.ndarray) -> np.ndarray:
    """FAISS's numbers of centroids (n, codebooks) int32 for rows Z (n, d'), in blocks of one size: its products round
    as the batch falls. `quantizer` adds no norms."""
    n = len(Z)
    padded = np.zeros((n + -n % _BLOCK, Z.shape[1]), np.float32)
    padded[:n] = Z
    codes = np.empty((len(padded), quantizer.code_size), np.uint8)
    for first in range(0, len(padded), _BLOCK):
        rows = slice(first, first + _BLOCK)
        codes[rows] = quantizer.compute_codes(padded[rows])
    bits = int(faiss.vector_to_array(quantizer.nbits)[0])
    return faiss.unpack_bitstrings(codes[:n], quantizer.M, bits)


def packed(quantizer: faiss.AdditiveQuantizer, numbers: np.ndarray, centres: np.ndarray | None = None) -> np.ndarray:
    """FAISS's codes (n, bytes) uint8, with norms, if any, of the decoded rows plus their `centres` (n, d') or None."""
    numbers = np.ascontiguousarray(numbers, np.int32)
    codes, before = np.zeros((len(numbers), quantizer.code_size), np.uint8), None
    if centres is not None:
        centres = np.ascontiguousarray(centres, np.float32)
        before = faiss.swig_ptr(centres)
    quantizer.pack_codes(len(numbers), faiss.swig_ptr(numbers), faiss.swig_ptr(codes), -1, None, before)
    return codes


def _bits(n_centroids: int) -> int:
    return (n_centroids - 1).bit_length()
