"""Signs to bytes and back. Bit 1 means a value >= 0 (sign(0) = +1); bits fill each byte from its lowest, as in FAISS.

That is the order of `faiss.IndexLSH` and `faiss.IndexBinaryFlat` and of `numpy.packbits(..., bitorder="little")`. A
length that is no multiple of 8 is padded with zero bits, which never change a Hamming distance.
"""

import numpy as np

BIT_ORDER = "bit 1 = value >= 0, little-endian within a byte, zero bits as padding"  # goes into saved folders


def n_bytes(n_bits: int) -> int:
    """Return ceil(n_bits / 8)."""
    return (n_bits + 7) // 8


def pack_signs(values: np.ndarray) -> np.ndarray:
    """Pack the signs of values (n, L) into codes (n, ceil(L / 8)) uint8; else ValueError."""
    if np.ndim(values) != 2:
        raise ValueError(f"values have shape {np.shape(values)}; they must be (n, L), a row of values for each code")
    return np.packbits(np.asarray(values) >= 0, axis=1, bitorder="little")


def unpack_bits(codes: np.ndarray, n_bits: int) -> np.ndarray:
    """Unpack codes (n, ceil(L / 8)) uint8 into bits (n, L) of 0 and 1, uint8."""
    return np.unpackbits(codes, axis=1, count=n_bits, bitorder="little")


def unpack_signs(codes: np.ndarray, n_bits: int, dtype: type = np.float32) -> np.ndarray:
    """Unpack codes (n, ceil(L / 8)) uint8 into signs (n, L) of -1 and +1."""
    return unpack_bits(codes, n_bits).astype(dtype) * 2 - 1
