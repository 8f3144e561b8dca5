"""The quantizer that an index is built with: the one given, or its copy fitted on the rows."""

# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from typing import cast

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from nearkin._check import has_unit_rows
from nearkin.contracts import Quantizer, VectorCodes
from nearkin.index.rescoring import normalised


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
