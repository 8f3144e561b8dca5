"""What scikit-learn asks of a transformer to codes, written once: `transform`, tags, names of its columns."""

from abc import abstractmethod

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nearkin._check import validate_vectors
from nearkin._types import ArrayLike


class CodesTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer to codes, whose columns are called by its class and counted: "itq0", "itq1", ...

    With it come `get_feature_names_out` and `set_output(transform="pandas" | "polars")`.
    """

    n_features_in_: int

    @abstractmethod
    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, width) of rows X (n, d)."""

    def transform(self, X: ArrayLike) -> np.ndarray:
        """`encode`, under scikit-learn's name."""
        return self.encode(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are integers whatever goes in
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.encode(np.zeros((1, self.n_features_in_), np.float32)).shape[1]


class ReconstructingTransformer(CodesTransformer):
    """A transformer to codes that stand for rows."""

    @abstractmethod
    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Rows (n, d) that codes, as `encode` gives them, stand for."""

    def inverse_transform(self, codes: ArrayLike) -> np.ndarray:
        """`decode`, under scikit-learn's name."""
        return self.decode(codes)

    def distortion(self, X: ArrayLike) -> float:
        """Mean squared L2 distance between the rows of X (n, d) and their reconstructions."""
        check_is_fitted(self)
        X = validate_vectors(self, X)
        return float(np.square(X.astype(np.float64) - self.decode(self.encode(X))).sum(axis=1).mean())
