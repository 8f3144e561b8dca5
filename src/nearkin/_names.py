"""Names for the columns that a transformer gives, as scikit-learn's `set_output` and pipelines ask for them."""

from abc import abstractmethod

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from nearkin._types import ArrayLike


class NamedColumns(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A transformer to codes, whose columns are called by its class and counted: "itq0", "itq1", ...

    With it come `get_feature_names_out` and `set_output(transform="pandas" | "polars")`.
    """

    n_features_in_: int

    @abstractmethod
    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, width) of rows X (n, d)."""

    @property
    def _n_features_out(self) -> int:
        return self.encode(np.zeros((1, self.n_features_in_), np.float32)).shape[1]
