"""Fitted scikit-learn estimators to a folder and back: numeric arrays to safetensors, everything else to JSON."""

import json
from abc import abstractmethod
from typing import Any, ClassVar, Self, get_args, get_type_hints

import faiss
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_integer, check_names, validate_vectors
from nearkin._faiss import add_codes
from nearkin._fields import Extra, StrPath
from nearkin._storage import SavedArrays, read_saved, reading, saving_folder, write_arrays
from nearkin._types import ArrayLike

Source = StrPath | SavedArrays  # a saved folder, or what was read of it
MAX_WIDTH = 10**8  # columns of what is loaded: more is damage


def _plain(value: object) -> object:
    """A value as JSON holds it, None where it cannot."""
    return json.loads(json.dumps(value, default=lambda part: part.tolist() if hasattr(part, "tolist") else None))


class SavedEstimator(BaseEstimator):
    """An estimator with a folder; `KIND` is its kind in `config.json`."""

    KIND: ClassVar[str]

    def _check_loaded(self: Any) -> None:
        """Transform one row, so that a damaged value fails at once; overridden if `transform` uses fewer values."""
        width = check_integer(self.n_features_in_, "n_features_in_", low=1, high=MAX_WIDTH)
        with np.errstate(all="ignore"):
            self.transform(np.zeros((1, width), np.float32))

    def save(self, path: StrPath, *, overwrite: bool = False) -> None:
        """Write a folder of `config.json` and `arrays.safetensors`; it appears whole or not at all.

        NotFittedError before `fit`; ValueError if `path` exists, without `overwrite`. A generator given as a parameter
        comes back as None.
        """
        check_is_fitted(self)
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        arrays = {name: x for name, x in fitted.items() if isinstance(x, np.ndarray) and x.dtype.kind in "fiub"}
        scalars = {name: _plain(value) for name, value in fitted.items() if name not in arrays}
        params = {name: _plain(value) for name, value in self.get_params(deep=False).items()}
        config = {"class": type(self).__name__, "params": params, "fitted": scalars}
        with saving_folder(path, self.KIND, config, overwrite) as folder:
            write_arrays(folder / "arrays.safetensors", arrays)

    @classmethod
    def load(cls, path: Source) -> Self:
        """Read the folder that `save` wrote, or what was read of it; ValueError if it holds another class."""
        found = read_saved(path, cls.KIND)
        config = found.config
        with reading(found.path):
            if config["class"] != (name := cls.__name__):
                raise ValueError(f"{found.path} holds a {config['class']}, not a {name}; load it with its own class")
            hints = get_type_hints(cls.__init__)
            for name, value in config["params"].items():  # many of them are used long after loading
                allowed = tuple(hint for hint in (hints[name], *get_args(hints[name])) if isinstance(hint, type))
                allowed += (int,) if float in allowed else ()
                if value is not None and not isinstance(value, allowed):
                    raise TypeError(f"{name} is {value!r:.40}")
            estimator = cls(**config["params"])
            fitted = {**config["fitted"], **found.arrays}
            names = fitted.pop("feature_names_in_", None)
            vars(estimator).update(fitted)
            estimator._check_loaded()
            if names is not None:
                estimator.feature_names_in_ = np.asarray(names, dtype=object)
            return estimator


class CodesTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):
    """A transformer to codes, whose columns are called by its class and counted: "itq0", "itq1", ...

    With it come `get_feature_names_out` and `set_output(transform="pandas" | "polars")`.
    """

    n_features_in_: int

    @abstractmethod
    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, width) of vectors X (n, d)."""

    def transform(self, X: ArrayLike) -> np.ndarray:
        """`encode`, under scikit-learn's name. A column holds the numbers of centroids, or steps of a scale. Numbers of
        centroids are categories: before a model of numbers, as in a `Pipeline`, they need a `OneHotEncoder`."""
        check_is_fitted(self)
        check_names(self, X)
        return self.encode(X)

    def __sklearn_tags__(self) -> Extra:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are integers whatever goes in
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.encode(np.zeros((1, self.n_features_in_), np.float32)).shape[1]


class ReconstructingTransformer(CodesTransformer):
    """A transformer to codes that decode to vectors."""

    ranks_by: tuple[str, ...] = ()  # see `contracts.VectorCodes`

    @abstractmethod
    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Vectors (n, d) decoded from codes that `encode` gave."""

    def faiss_codes(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, bytes) uint8 of vectors X (n, d) as an index made by `to_faiss` stores them."""
        return self.encode(X)

    def add_to(self, index: faiss.Index, X: ArrayLike) -> None:
        """Add vectors X (n, d) to an index made by `to_faiss`, each under the code that `encode` gives it."""
        # not `index.add(X)`: the last bits of rotated rows, and by "ip" the lists, would depend on the batch
        add_codes(index, self.faiss_codes(X))

    def inverse_transform(self, codes: ArrayLike) -> np.ndarray:
        """`decode`, under scikit-learn's name."""
        return self.decode(codes)

    def distortion(self, X: ArrayLike) -> float:
        """Mean squared L2 distance between the vectors of X (n, d) and their reconstructions."""
        check_is_fitted(self)
        rows = validate_vectors(self, X).astype(np.float64)
        return float(np.square(rows - self.decode(self.encode(X))).sum(axis=1).mean())
