"""Rows as sums of centroids, one from each codebook: FAISS's training and beam search, and codebooks refitted to codes.

FAISS learns codebook after codebook on what the earlier ones leave. Given the codes, all codebooks together are a least
squares problem, whose normal equations are sums over the rows; coding and refitting alternate, as in k-means. Babenko &
Lempitsky 2014 (additive quantization); Liu, Shao & Lu 2015 (refitting a residual quantizer).

A codebook of full width has more numbers than the rows can tell: 8 x 256 centroids of 128 columns are fitted to 16,000
rows. Least squares then codes those rows, and not others. Two things are done about it. Learning runs along the
principal axes that the bits can reach, and the refits between rounds shrink centroids towards zero, along each axis as
the noise of a mean of so few rows demands (empirical Bayes; Efron & Morris 1973), a quarter as far: the formula knows
nothing of codes, which are chosen to suit the centroids.

The last refit does not shrink. A shrunk sum is too short, the more so the longer the row is, and where rows differ in
length long ones then crowd among the neighbours of short ones. Least squares leaves the larger error on rows that were
not learned from, and still keeps more neighbours of both. Kept of ten, all refits shrunk whole, and now: word vectors
of 300 columns, 15 bytes, 7,500 rows learned from .63 and .77, others .51 and .60; MNIST, 12 bytes, 8,192 rows, .76 and
.82, .70 and .72; SIFT, 8 bytes, .67 and .71, .59 and .60. FAISS's residual codes of those words: .73 and .57.

Coding and refitting stop at a poor local optimum. Codebooks are therefore refitted to rows with noise, as large as the
error at first and none in the last round (SR-D of Martinez, Zakhmi, Hoos & Little 2018, LSQ++, which moves the rows
by their own spread; at the size of the error fewer rounds are needed). Where centroids are nearly as many as rows the
error of those rows says nothing of the noise, and the rounds lead away: the start, refitted once, is kept if it codes
the rows better by more than a tenth. At equal error of those rows the rounds' codebooks code others better.
"""

import faiss
import numpy as np

from nearkin.contracts import Callback, ignore
from nearkin.quantization.codebooks import ClusterSums
from nearkin.quantization.principal import principal_axes, reached

TRAIN_BEAM = 2  # in the rounds: wider costs more and fits the training rows, not others
START_BEAM = 5  # of the start
_CLEARLY = 1.1  # times the error of the start, refitted: beyond it the rounds led away
SHRINK = 0.25  # of what empirical Bayes says, in the rounds
_SWEEPS = 4  # Gauss-Seidel sweeps over the codebooks for one refit
_TABLES = 4096  # centroids in all up to which FAISS's search by inner products of all pairs pays
_BLOCK = 64  # rows coded at a time
_REACH = 4.0  # axes of a variance down to this part of the water level are learned along: fewer lose, more cost
_LEAST = 1e-3  # of the error's variance: what a codebook may explain along an axis, at least


def learn(
    X: np.ndarray,
    n_codebooks: int,
    n_centroids: int,
    rounds: int,
    seed: int,
    beam_size: int = START_BEAM,
    callback: Callback = ignore,
) -> np.ndarray:
    """Codebooks (M, K, w) float32 of centred rows X (n, w) float32: a start, then `rounds` of coding and refitting.

    The codebooks kept are those of the rows' codes by `beam_size`, by which rows are to be coded: with wider beams
    than these even rows that were learned from get codes that keep fewer neighbours. `callback(round, record)` hears
    the distortion of each round before its refit.
    """
    axes, variances = principal_axes(X)
    active = reached(variances, n_codebooks * _bits(n_centroids), _REACH)
    X = X @ axes
    Z = np.ascontiguousarray(X[:, :active])
    codebooks, generator = start(Z, n_codebooks, n_centroids, seed), np.random.default_rng(seed)
    ends: list[tuple[float, np.ndarray]] = []
    for index in range(rounds):
        codes = encode(Z, codebooks, beam_size if at_an_end(index, rounds) else TRAIN_BEAM)
        error = float(np.square(Z - decode(codes, codebooks), dtype=np.float64).sum(axis=1).mean())
        error += float(variances[active:].sum())
        callback(index + 1, {"objective": error, "distortion": error, "total": rounds})
        if at_an_end(index, rounds):
            ends.append(settled(X, codes, codebooks, beam_size))
        if index + 1 < rounds:
            noisy = relaxed(Z, codes, codebooks, (index + 1) / rounds, generator)
            codebooks = refit(noisy, codes, codebooks, SHRINK)
    codebooks = ends[end_kept([error for error, _ in ends])][1] if ends else codebooks
    return codebooks @ axes[:, : codebooks.shape[2]].T


def at_an_end(index: int, rounds: int) -> bool:
    """Whether round `index`, from 0, is the first or the last: the codebooks of one of the two are kept."""
    return index in (0, rounds - 1)


def end_kept(errors: list[float]) -> int:
    """Which of the ends is kept, by their errors: the last, but 0, the start refitted, where the rounds led away."""
    return 0 if errors[-1] > _CLEARLY * errors[0] else len(errors) - 1


def settled(X: np.ndarray, codes: np.ndarray, codebooks: np.ndarray, beam_size: int) -> tuple[float, np.ndarray]:
    """Codebooks (M, K, w) refitted to rows X (n, w) without shrinking, and the rows' error, coded anew by `beam_size`.

    `codebooks` may have fewer columns than X.
    """
    wide = np.zeros((*codebooks.shape[:2], X.shape[1]), np.float32)
    wide[:, :, : codebooks.shape[2]] = codebooks
    wide = refit(X, codes, wide, 0)
    left = X - decode(encode(X, wide, beam_size), wide)
    return float(np.square(left, dtype=np.float64).sum(axis=1).mean()), wide


def start(X: np.ndarray, n_codebooks: int, n_centroids: int, seed: int) -> np.ndarray:
    """FAISS's codebooks (M, K, w) of rows X (n, w): k-means of what the ones before leave."""
    quantizer = faiss.ResidualQuantizer(X.shape[1], n_codebooks, _bits(n_centroids))
    quantizer.train_type = faiss.ResidualQuantizer.Train_default
    quantizer.max_beam_size = min(START_BEAM, n_centroids**n_codebooks)
    quantizer.cp.seed, quantizer.cp.min_points_per_centroid = seed & 0x7FFFFFFF, 1
    quantizer.train(np.ascontiguousarray(X))
    return faiss.vector_to_array(quantizer.codebooks).reshape(n_codebooks, n_centroids, X.shape[1]).copy()


def relaxed(
    X: np.ndarray, codes: np.ndarray, codebooks: np.ndarray, done: float, generator: np.random.Generator
) -> np.ndarray:
    """Rows X (n, w) with normal noise, of the error's spread along each axis times sqrt(1 - `done`)."""
    spread = np.float32(np.sqrt(1 - done)) * (X - decode(codes, codebooks)).std(axis=0)
    return X + spread * generator.standard_normal(X.shape, np.float32)


def refit(X: np.ndarray, codes: np.ndarray, codebooks: np.ndarray, shrink: float = 1.0) -> np.ndarray:
    """Codebooks (M, K, w) for given codes: of a smaller ||X - sum_m C_m[codes_m]||^2, by Gauss-Seidel.

    With B (n, M K) the codes as indicators, B^T B C = B^T X: both sides are sums over rows. One codebook's part of
    B^T B is diagonal, so a codebook is solved exactly given the others. A centroid that n_k rows chose is then
    n_k / (n_k + `shrink` s_j / v_j) times that along axis j, where s_j is the variance of the error and v_j that of the
    codebook's centroids less what s_j explains of it: with 1 the posterior mean of a centroid drawn from N(0, v_j).
    Axes should be principal ones. With 0 the error cannot rise. A centroid that no row chose stays.
    """
    (M, K, _), n = codebooks.shape, len(X)
    cells = ClusterSums(M, K, X.shape[1]).update(X, codes)
    pairs, counts = _pairs(codes, K), cells.counts[..., None]
    C = codebooks.astype(np.float64)
    noise = np.square(X - decode(codes, codebooks)).mean(axis=0, dtype=np.float64) * n / max(n - M * K, n / 4)
    for _ in range(_SWEEPS if M > 1 else 1):
        flat = C.reshape(M * K, -1)
        for m in range(M):
            others = pairs[m * K : (m + 1) * K] @ flat.astype(np.float32) - counts[m] * C[m]
            sums, chosen = cells.sums[m] - others, counts[m] > 0
            mean = sums / np.maximum(counts[m], 1)
            weight = np.float64(0)
            if shrink:
                spread = (counts[m] / n * np.square(mean)).sum(axis=0) - K / n * noise
                weight = shrink * noise / np.maximum(np.maximum(spread, _LEAST * noise), np.finfo(float).tiny)
            C[m] = np.where(chosen, sums / np.maximum(counts[m] + weight, 1), C[m])
    return C.astype(np.float32)


def _pairs(codes: np.ndarray, K: int) -> np.ndarray:
    """B^T B (M K, M K) float32: how many rows chose each pair of centroids."""
    M = codes.shape[1]
    pairs = np.empty((M, K, M, K), np.float32)
    for m in range(M):
        for other in range(m, M):
            both = np.bincount(codes[:, m].astype(np.int64) * K + codes[:, other], minlength=K * K).reshape(K, K)
            pairs[m, :, other], pairs[other, :, m] = both, both.T
    return pairs.reshape(M * K, M * K)


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
    """Give FAISS's quantizer our codebooks (M, K, w) and the width of its beam.

    The beam is no wider than there are codes: FAISS would choose among what it never wrote.
    """
    M, K, _ = codebooks.shape
    faiss.copy_array_to_vector(np.ascontiguousarray(codebooks, np.float32).ravel(), quantizer.codebooks)
    quantizer.max_beam_size, quantizer.is_trained = min(beam, K**M), True
    if not isinstance(quantizer, faiss.ResidualQuantizer):
        return
    quantizer.train_type |= faiss.ResidualQuantizer.Skip_codebook_tables  # else FAISS makes them whenever it reads one
    if M * K <= _TABLES:
        quantizer.use_beam_LUT = 1
        quantizer.compute_codebook_tables()


def steady_codes(index: faiss.Index, Z: np.ndarray, lists: np.ndarray | None = None) -> np.ndarray:
    """FAISS's codes (n, bytes) of rows Z (n, d'), block by block of one size: its products round as the batch falls.

    `lists` (n,) int64 are the rows' lists where `index` is an inverted file; their numbers then begin the codes.
    """
    n = len(Z)
    padded = np.zeros((n + -n % _BLOCK, Z.shape[1]), np.float32)
    padded[:n] = Z
    if lists is not None:
        lists = np.concatenate([lists, np.zeros(len(padded) - n, np.int64)])
    codes = np.empty((len(padded), index.sa_code_size()), np.uint8)
    for first in range(0, len(padded), _BLOCK):
        rows = slice(first, first + _BLOCK)
        if lists is not None and isinstance(index, faiss.IndexIVF):
            own, numbers, into = (faiss.swig_ptr(array[rows]) for array in (padded, lists, codes))
            index.encode_vectors(_BLOCK, own, numbers, into, True)
        else:
            codes[rows] = index.sa_encode(padded[rows])
    return codes[:n]


def _bits(n_centroids: int) -> int:
    return (n_centroids - 1).bit_length()
