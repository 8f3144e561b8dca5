"""The base class of hashers: real values whose signs are the code, packed bytes, and a FAISS index."""

from abc import ABC, abstractmethod
from importlib import import_module
from typing import ClassVar, Self

import faiss
import numpy as np
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_choice, check_codes, check_integer, check_names, check_real, validate_vectors
from nearkin._estimators import CodesTransformer
from nearkin._fields import StrPath
from nearkin._storage import SavedArrays, read_saved
from nearkin._types import ArrayLike
from nearkin.contracts import Callback
from nearkin.hashing.bits import asymmetric_index, binary_index, n_bytes, pack_signs, pad_columns, unpack_bits
from nearkin.hashing.spectrum import SCALES
from nearkin.linalg.signs import row_blocks

ENCODED = 16_384  # rows that are encoded at a time
_COUNTS = ("n_bits", "max_iter", "n_inner", "n_components")  # parameters of hashers, at least 1
_NOT_NEGATIVE = ("tol", "whitening")
_POSITIVE = ("scale", "mu", "ridge")


class AbstractHasher(CodesTransformer, ABC):
    """A scikit-learn transformer from vectors (n, d) to bits (n, n_bits); `encode` packs them into codes (n,
    ceil(n_bits / 8)) uint8.

    A bit is 1 where `project` is >= 0; bits fill each byte from its lowest, as in FAISS and in
    `numpy.packbits(..., bitorder="little")`; a number of bits that is no multiple of 8 is padded with zero bits.
    """

    KIND: ClassVar[str] = "hasher"
    n_features_in_: int
    n_bits: int

    @abstractmethod
    def fit(self, X: ArrayLike, y: object = None, *, callback: Callback | None = None) -> Self:
        """Train on X (n, d); `y` is ignored; `callback` is called after each iteration, counted from 1."""

    @abstractmethod
    def _project(self, X: np.ndarray) -> np.ndarray:
        """Return the real values (n, L) of checked rows X."""

    def _n_components(self, labels: bool) -> int | None:
        """The number of principal components to learn in, `n_components` or `n_bits` if that is more; None for all, as
        in a regression on labels: 1,000 kernel features of GIST, mAP .442 by 512 components, .471 by all."""
        most = self.get_params().get("n_components", 0)
        return None if most is None or (labels and most) else max(most, self.n_bits)

    def _check_params(self) -> None:
        """ValueError or TypeError for a number out of its limits."""
        for name, value in self.get_params().items():
            if value is None and name in ("n_components", "ridge"):
                continue
            if name == "scale" and isinstance(value, str):
                check_choice(value, "scale", SCALES)
            elif name in _COUNTS:
                check_integer(value, name, low=1)
            elif name in _NOT_NEGATIVE:
                check_real(value, name, low=0, high=1 if name == "whitening" else None)
            elif name in _POSITIVE:
                check_real(value, name, above=0)

    def project(self, X: ArrayLike) -> np.ndarray:
        """Return real values (n, n_bits) whose signs are the code of X (n, d), with sign(0) = +1."""
        check_is_fitted(self)
        return np.concatenate([self._project(rows) for rows in row_blocks(validate_vectors(self, X), ENCODED)])

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Return packed codes (n, ceil(n_bits / 8)) uint8 of X (n, d); a vector's code does not depend on its batch."""
        check_is_fitted(self)
        X = validate_vectors(self, X)  # a block of values at a time: they take 32 times the memory of the codes
        return np.concatenate([pack_signs(self._project(rows)) for rows in row_blocks(X, ENCODED)])

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return bits (n, n_bits) uint8 of X (n, d), 0 or 1, for other estimators; `encode` packs them."""
        check_is_fitted(self)
        check_names(self, X)
        return unpack_bits(self.encode(X), self.n_bits)

    @property
    def _n_features_out(self) -> int:
        return self.n_bits

    def quantization_error(self, X: ArrayLike) -> float:
        """Return the mean of (sign - value)^2 over vectors of X and bits: the loss per bit of SCQ, Table 3."""
        return float(np.mean((1 - np.abs(self.project(X))) ** 2))

    def search(
        self, Q: ArrayLike, codes: np.ndarray, k: int = 10, *, asymmetric: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (Hamming distances, ids), both (q, k), of the nearest of `codes` (n, bytes) to the codes of Q (q, d).

        With `asymmetric` real-valued queries p search stored signs b: (inner products <p, b>, ids), largest first, in
        the order of |p - b|. `nk.Index.build(X, hasher, metric="hamming", keep_vectors=True)` also ranks the best by
        exact distances. k is cut at the number of codes.
        """
        asked = pad_columns(self.project(Q)) if asymmetric else self.encode(Q)
        codes = check_codes(codes, n_bytes(self.n_bits), min_rows=1)
        index = asymmetric_index(self.n_bits) if asymmetric else binary_index(codes.shape[1])
        (index.add_sa_codes if asymmetric else index.add)(codes)
        return index.search(asked, min(check_integer(k, "k", low=1), len(codes)))

    def to_faiss(self, *, n_lists: int | None = None, codes: np.ndarray | None = None) -> faiss.IndexBinary:
        """Return an empty binary FAISS index for `encode`'s codes: flat, or `n_lists` trained on sample `codes`."""
        check_is_fitted(self)
        return binary_index(n_bytes(self.n_bits), n_lists, codes)


def load(path: StrPath | SavedArrays) -> AbstractHasher:
    """Read a hasher that `save` wrote.

    Parameters
    ----------
    path: its folder.

    Returns
    -------
    hasher: of the class that was saved.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 32))
    >>> nk.ITQ(16, random_state=0).fit(X).save("bits")
    >>> nk.hashing.load("bits").n_bits
    16
    """
    found = read_saved(path, "hasher")
    name = found.config.get("class")
    hasher = getattr(import_module("nearkin.hashing"), str(name), None)
    if not (isinstance(hasher, type) and issubclass(hasher, AbstractHasher)):
        raise ValueError(f"{found.path} holds a hasher {name!r}, which this nearkin does not have")
    return hasher.load(found)
