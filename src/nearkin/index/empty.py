"""The FAISS index for a metric and a quantizer, without rows yet."""

import faiss

from nearkin._check import check_choice, check_integer
from nearkin._faiss import FaissIndex
from nearkin.contracts import BitCodes, Quantizer, ScannedCodes, VectorCodes
from nearkin.hashing.bits import n_bytes
from nearkin.index.metrics import METRICS


def empty_faiss(d: int, quantizer: Quantizer | None, metric: str, fast_scan: bool | None) -> FaissIndex:
    """An empty FAISS index for rows of width d.

    ValueError or TypeError for a quantizer that does not go with d or the metric; it says what to type instead.
    """
    check_integer(d, "d", low=1)
    check_choice(metric, "metric", METRICS)
    inner_metric = "l2" if metric == "l2" else "ip"
    if quantizer is None:
        if metric == "hamming":
            raise ValueError("metric='hamming' needs a quantizer that gives bits, for example nk.ITQ(n_bits=64)")
        return faiss.IndexFlatL2(d) if metric == "l2" else faiss.IndexFlatIP(d)  # the classes that FAISS reads back
    _check_quantizer(quantizer, d, metric)
    if isinstance(quantizer, BitCodes):
        return faiss.IndexBinaryFlat(8 * n_bytes(quantizer.n_bits))
    if isinstance(quantizer, ScannedCodes):
        fast = quantizer.scans_fast(inner_metric) if fast_scan is None else bool(fast_scan)
        return quantizer.to_faiss(inner_metric, fast_scan=fast)
    if fast_scan:
        raise ValueError(f"fast_scan is for product and residual codes with n_centroids=16, not for {_name(quantizer)}")
    return quantizer.to_faiss(inner_metric)  # type: ignore[attr-defined]


def _check_quantizer(quantizer: Quantizer, d: int, metric: str) -> None:
    name = _name(quantizer)
    if not isinstance(quantizer, BitCodes | VectorCodes):
        raise TypeError(
            f"quantizer is a {name}; it must be a product quantizer, for example nk.ProductQuantizer(8), or a hasher"
        )
    if isinstance(quantizer, BitCodes) != (metric == "hamming"):
        gives, types = ("bits", "metric='hamming'") if metric != "hamming" else ("bytes", "metric='l2' or 'ip'")
        raise ValueError(f"metric is {metric!r}, and {name} gives {gives}; type {types}")
    if quantizer.n_features_in_ != d:
        raise ValueError(f"quantizer was fitted on {quantizer.n_features_in_} columns, and the index has {d}")
    if metric == "cosine" and isinstance(quantizer, VectorCodes) and quantizer.normalized_ is False:
        raise ValueError(
            "metric='cosine' normalises rows, and quantizer was fitted on rows that are not; fit it on "
            "X / np.linalg.norm(X, axis=1, keepdims=True), or give Index.build one that is not fitted"
        )


def _name(quantizer: object) -> str:
    return type(quantizer).__name__
