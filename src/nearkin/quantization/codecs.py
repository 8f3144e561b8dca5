"""What engines do to rows, by name: each codec learns from rows and then says what rows become once they are coded."""

from collections.abc import Callable

import faiss
import numpy as np

from nearkin.contracts import Codec

Coded = Callable[[np.ndarray], np.ndarray]  # rows (n, d) to what their codes stand for (n, d)
Train = Callable[[np.ndarray], Coded]  # rows that the codec learns from to the codec
_KMEANS = 10  # iterations of a product codec that is trained again for every rotation tried


def _sign(Z: np.ndarray) -> Coded:
    """Sign bits at one length for all rows, whose distances are Hamming distances: "binary quantization"."""
    scale = np.float32(np.abs(Z).mean())
    return lambda rows: np.where(rows > 0, scale, -scale)


def _by_faiss(make: Callable[[int], faiss.Index]) -> Train:
    def train(Z: np.ndarray) -> Coded:
        index = make(Z.shape[1])
        index.train(np.ascontiguousarray(Z))
        return _through(index)

    return train


def _through(index: faiss.Index) -> Coded:
    return lambda rows: index.sa_decode(index.sa_encode(np.ascontiguousarray(rows, np.float32)))


def _rabitq(Z: np.ndarray) -> Coded:
    """RaBitQ's estimate: the signs of a row about the mean, at the length that keeps its inner product with itself."""
    mean = Z.mean(axis=0)

    def coded(rows: np.ndarray) -> np.ndarray:
        centred = rows - mean
        signs = np.where(centred > 0, 1, -1)
        squares = np.square(centred).sum(axis=1, keepdims=True)
        return mean + signs * squares / np.maximum(np.abs(centred).sum(axis=1, keepdims=True), 1e-30)

    return coded


def _product(n_bytes: int) -> Train:
    def make(d: int) -> faiss.Index:
        index = faiss.IndexPQ(d, n_bytes, 8)
        index.pq.cp.niter, index.pq.cp.min_points_per_centroid = _KMEANS, 1
        return index

    return _by_faiss(make)


NAMED: dict[str, Train] = {
    "sign": _sign,
    "int8": _by_faiss(lambda d: faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_8bit)),
    "int4": _by_faiss(lambda d: faiss.IndexScalarQuantizer(d, faiss.ScalarQuantizer.QT_4bit)),
    "rabitq": _rabitq,
}


def find_codec(codec: str | Codec | faiss.Index, d: int) -> Train:
    """The codec that `Rotation(codec=...)` names, for rows of d columns; ValueError or TypeError for none.

    A string of `NAMED`, "pq" and a number of bytes that divides d ("pq8"), a FAISS index (a trained one stays as it
    is), or an object with encode and decode.
    """
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
