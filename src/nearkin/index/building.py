"""What building an index needs: the fitted quantizer, and the empty FAISS index for it and the metric."""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from typing import cast

import faiss
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_choice, check_integer, has_unit_rows
from nearkin._faiss import FaissIndex
from nearkin.contracts import BitCodes, Quantizer, ScannedCodes, VectorCodes
from nearkin.hashing.bits import n_bytes
from nearkin.index.faiss_rows import METRICS
from nearkin.index.searching import normalised


def fitted(quantizer: Quantizer, X: np.ndarray, metric: str) -> Quantizer:
    """The quantizer, or its copy fitted on X; ValueError for one that was fitted on rows of another length."""
    try:
        check_is_fitted(quantizer)
    except NotFittedError:
        return cast(Quantizer, clone(quantizer)).fit(normalised(X) if metric == "cosine" else X)
    if isinstance(quantizer, VectorCodes) and quantizer.normalized_ and metric != "cosine" and not has_unit_rows(X):
        raise ValueError(
            "quantizer was fitted on normalised rows, and the rows of X have other lengths; type metric='cosine', "
            "or give a quantizer that is not fitted"
        )
    return quantizer


def empty_faiss(d: int, quantizer: Quantizer | None, metric: str, fast_scan: bool | None) -> FaissIndex:
    """An empty FAISS index for rows of width d; ValueError or TypeError for a quantizer that does not fit them."""
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
