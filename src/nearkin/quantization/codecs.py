"""Engines' codecs by name: each learns from rows and returns the function from rows to their decoded codes."""

import re
from collections.abc import Callable

import faiss
import numpy as np

from nearkin.contracts import Codec
from nearkin.quantization.scalar import ScalarQuantizer

Coded = Callable[[np.ndarray], np.ndarray]  # rows (n, d) to their decoded codes (n, d)
Train = Callable[[np.ndarray], Coded]  # rows that the codec learns from to the codec
_KMEANS = 10  # iterations of a product codec that is trained again for every rotation tried


def _sign(Z: np.ndarray) -> Coded:
    """Sign bits at one length for all rows, whose distances are Hamming distances: "binary quantization"."""
    scale = np.float32(np.abs(Z).mean())
    return lambda rows: np.where(rows > 0, scale, -scale)


def _by_faiss(make: Callable[[int], faiss.Index]) -> Train:
    def train(Z: np.ndarray) -> Coded:
        index = make(Z.shape[1])
        try:
            index.train(np.ascontiguousarray(Z))
        except RuntimeError as error:
            raise ValueError(f"X leaves {len(Z)} rows, too few to learn this codec; {_wanted(error)}") from error
        return _through(index)

    return train


def _wanted(error: RuntimeError) -> str:
    """What FAISS's k-means asks for, in rows of X: a half and more of them are learned from."""
    centroids = re.search(r"number of clusters \((\d+)\)", str(error))
    return f"give {2 * int(centroids[1])} or more" if centroids else "give more"


def _through(index: faiss.Index) -> Coded:
    return lambda rows: index.sa_decode(index.sa_encode(np.ascontiguousarray(rows, np.float32)))


def _by_rows(n_bits: int) -> Train:
    """Equal steps from the least to the largest entry of each row, both kept with its code."""

    def coded(rows: np.ndarray) -> np.ndarray:
        low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
        step = np.maximum((high - low) / (2**n_bits - 1), np.finfo(np.float32).tiny)
        return (low + np.round((rows - low) / step) * step).astype(np.float32)

    return lambda Z: coded


def _by_all(n_bits: int) -> Train:
    """Equal steps up to the largest of all entries, either sign: one scale for all columns and rows."""

    def train(Z: np.ndarray) -> Coded:
        most = 2 ** (n_bits - 1) - 1
        step = np.maximum(np.abs(Z).max() / most, np.finfo(np.float32).tiny)
        return lambda rows: (np.clip(np.round(rows / step), -most, most) * step).astype(np.float32)

    return train


def _by_ranges(n_bits: int) -> Train:
    """Equal steps between two quantiles of each column, those with the least distortion: an engine's "quantile"."""

    def train(Z: np.ndarray) -> Coded:
        codec = ScalarQuantizer(n_bits).fit(Z)
        return lambda rows: codec.decode(codec.encode(rows))

    return train


def _about_the_mean(shape: Callable[[np.ndarray], np.ndarray]) -> Train:
    """Rows less the mean to what `shape` makes of them, at the length that keeps a row's inner product with itself."""

    def train(Z: np.ndarray) -> Coded:
        mean = Z.mean(axis=0)

        def coded(rows: np.ndarray) -> np.ndarray:
            centred = rows - mean
            shaped = shape(centred)
            products = np.einsum("nd,nd->n", centred, shaped)[:, None]
            squares = np.einsum("nd,nd->n", centred, centred)[:, None]
            return (mean + shaped * (squares / np.maximum(products, 1e-30))).astype(np.float32)

        return coded

    return train


def _product(n_bytes: int) -> Train:
    def make(d: int) -> faiss.Index:
        index = faiss.IndexPQ(d, n_bytes, 8)
        index.pq.cp.niter, index.pq.cp.min_points_per_centroid = _KMEANS, 1
        return index

    return _by_faiss(make)


NAMED: dict[str, Train] = {
    "sign": _sign,
    "sign-float": _sign,
    "int8": _by_faiss(lambda d: faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_8bit)),
    "int4": _by_faiss(lambda d: faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_4bit)),
    "int8-quantile": _by_ranges(8),
    "int4-quantile": _by_ranges(4),
    "int8-all": _by_all(8),
    "int8-row": _by_rows(8),
    "int4-row": _by_rows(4),
    "rabitq": _about_the_mean(lambda centred: np.where(centred > 0, np.float32(1), np.float32(-1))),
}
CODE_QUERIES = ("sign", "int8-all", "int8-row", "int4-row")  # queries are coded as rows are
HOLD_NORMS = ("rabitq",)  # engines store each row's norm with these codes


def find_codec(codec: str | Codec | faiss.Index, d: int) -> Train:
    """The codec that `Rotation(codec=...)` names, for rows of d columns; ValueError or TypeError for none: a name in
    `NAMED`, "pq8" with a number that divides d, a FAISS index, or an object with encode and decode."""
    if isinstance(codec, str):
        if codec in NAMED:
            return NAMED[codec]
        if codec.startswith("pq") and codec[2:].isdigit() and 0 < int(codec[2:]) <= d and d % int(codec[2:]) == 0:
            return _product(int(codec[2:]))
        names = ", ".join(map(repr, NAMED))
        raise ValueError(f"codec is {codec!r}; it must be one of {names}, or 'pq' and bytes that divide d={d}: 'pq8'")
    if isinstance(codec, faiss.Index):
        if codec.d != d:
            raise ValueError(f"codec is an index of {codec.d} columns; X has {d}")
        return (lambda Z: _through(codec)) if codec.is_trained else _by_faiss(lambda _: faiss.clone_index(codec))
    if isinstance(codec, Codec):
        return lambda Z: lambda rows: np.asarray(codec.decode(codec.encode(rows)), np.float32)
    raise TypeError(f"codec is a {type(codec).__name__}; it must be a name, a faiss.Index or have encode and decode")
