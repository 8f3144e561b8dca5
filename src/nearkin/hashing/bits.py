"""Signs to bytes and back. Bit 1 means a value >= 0 (sign(0) = +1); bits fill each byte from its lowest, as in FAISS.

That is the order of `faiss.IndexLSH` and `faiss.IndexBinaryFlat` and of `numpy.packbits(..., bitorder="little")`. A
length that is no multiple of 8 is padded with zero bits, which never change a Hamming distance.
"""

import faiss
import numpy as np

from nearkin._check import as_array, check_codes, check_integer
from nearkin.linalg.signs import unpack_bits


def n_bytes(n_bits: int) -> int:
    """Return ceil(n_bits / 8)."""
    return (n_bits + 7) // 8


def pack_signs(values: np.ndarray) -> np.ndarray:
    """Pack the signs of values (n, L) into codes (n, ceil(L / 8)) uint8; bit 1 means a value >= 0."""
    if np.ndim(values) != 2:
        raise ValueError(f"values have shape {np.shape(values)}; they must be (n, L), a row of values for each code")
    return np.packbits(np.asarray(values) >= 0, axis=1, bitorder="little")


def unpack_signs(codes: np.ndarray, n_bits: int, dtype: type = np.float32, order: str = "little") -> np.ndarray:
    """Unpack codes into signs of -1 and +1.

    Parameters
    ----------
    codes: (n, ceil(n_bits / 8)) uint8, or int8 less 128 as of sentence-transformers.
    n_bits: length of a code.
    dtype: type of the result.
    order: "little" if bits fill each byte from its lowest, "big" from its highest.

    Returns
    -------
    signs: (n, n_bits).

    Examples
    --------
    >>> nk.hashing.unpack_signs(np.array([[5]], np.uint8), 3)
    array([[ 1., -1.,  1.]], dtype=float32)
    """
    return unpack_bits(as_array(codes, "codes"), check_integer(n_bits, "n_bits", low=1), order).astype(dtype) * 2 - 1


def binary_index(width: int, n_lists: int | None = None, codes: np.ndarray | None = None) -> faiss.IndexBinary:
    """Return an empty FAISS index of codes of `width` bytes: flat, or inverted lists trained on sample `codes`."""
    flat = faiss.IndexBinaryFlat(8 * width)
    if n_lists is None:
        return flat
    if codes is None:
        raise ValueError("codes is None; an index with n_lists needs sample codes to train on, pass codes=encode(X)")
    codes = check_codes(codes, width)
    n_lists = check_integer(n_lists, "n_lists", low=1, high=len(codes))
    index = faiss.IndexBinaryIVF(flat, 8 * width, n_lists)
    flat.this.disown()  # the new index owns its quantizer
    index.own_fields = True
    index.cp.min_points_per_centroid = 1  # no warning for few rows per list: that is the caller's choice
    index.train(codes)
    return index


def asymmetric_index(n_bits: int) -> faiss.IndexPQ:
    """Return an empty `faiss.IndexPQ` by inner product whose codes are our packed codes, ready for `add_sa_codes`: its
    centroids are the 256 sign patterns of a byte. Queries are padded to whole bytes with zeros."""
    width = n_bytes(n_bits)
    index = faiss.IndexPQ(8 * width, width, 8, faiss.METRIC_INNER_PRODUCT)
    patterns = unpack_signs(np.arange(256, dtype=np.uint8)[:, None], 8)  # (256, 8), row c is the signs of byte c
    faiss.copy_array_to_vector(np.tile(patterns, (width, 1)).ravel(), index.pq.centroids)
    index.is_trained = True
    return index


def pad_columns(values: np.ndarray) -> np.ndarray:
    """Return values (n, L) as float32 with columns of zeros up to a multiple of 8."""
    return np.pad(values.astype(np.float32), ((0, 0), (0, -values.shape[1] % 8)))
