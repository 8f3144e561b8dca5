"""Fitted scikit-learn estimators to a folder and back: numeric arrays to safetensors, everything else to JSON."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, get_args, get_type_hints

import faiss
import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nearkin._check import check_integer, validate_vectors
from nearkin._faiss import add_codes
from nearkin._fields import StrPath
from nearkin._storage import SavedArrays, damage_named, read_saved, saving_folder, write_arrays
from nearkin._types import ArrayLike

Estimator = TypeVar("Estimator", bound="SavedEstimator")
Source = StrPath | SavedArrays  # a saved folder, or what was read of it
MAX_WIDTH = 10**8  # columns of what is loaded: more is damage


def save_estimator(estimator: BaseEstimator, path: StrPath, kind: str, **about: object) -> None:
    """Write a folder with the class's name, the parameters and every fitted value (`..._`) of an estimator. `about`
    adds facts to config.json. NotFittedError before `fit`. A generator given as a parameter comes back as None."""
    check_is_fitted(estimator)
    fitted = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    arrays = {name: x for name, x in fitted.items() if isinstance(x, np.ndarray) and x.dtype.kind in "fiub"}
    scalars = {name: _plain(value) for name, value in fitted.items() if name not in arrays}
    params = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    config = {"class": type(estimator).__name__, "params": params, "fitted": scalars, **about}
    with saving_folder(path, kind, config) as folder:
        write_arrays(folder / "arrays.safetensors", arrays)


def load_estimator(
    cls: type[Estimator],
    source: Source,
    kind: str,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Estimator:
    """Make the quantizer of class `cls` that `save_estimator` wrote; ValueError if the folder holds another.

    `source` is the folder, or what was read of it. `renamed`: old names of parameters to new ones.
    """
    found = read_saved(source, kind)
    config = found.config
    with damage_named(found.path):
        if config["class"] != cls.__name__:
            raise ValueError(
                f"{found.path} holds a {config['class']}, not a {cls.__name__}; load it with its own class"
            )
        params = {renamed.get(name, name): value for name, value in config["params"].items()}
        hints = get_type_hints(cls.__init__)
        for name, value in params.items():  # many of them are used long after loading
            allowed = tuple(hint for hint in (hints[name], *get_args(hints[name])) if isinstance(hint, type))
            allowed += (int,) if float in allowed else ()
            if value is not None and not isinstance(value, allowed):
                raise TypeError(f"{name} is {value!r:.40}")
        estimator = cls(**params)
        for name, value in {**config["fitted"], **found.arrays}.items():
            setattr(estimator, name, np.asarray(value, dtype=object) if name == "feature_names_in_" else value)
        estimator._check_loaded()
        return estimator


def _plain(value: object) -> object:
    """A value as JSON holds it, None where it cannot."""

    def listed(part: object) -> object:
        return part.tolist() if isinstance(part, np.ndarray | np.generic) else None

    return json.loads(json.dumps(value, default=listed))


class SavedEstimator(BaseEstimator):
    """An estimator with a folder: `KIND` is its kind in `config.json`."""

    KIND: ClassVar[str]

    def _check_loaded(self: Any) -> None:
        """Transform one row, so that a damaged value fails at once; overridden if `transform` uses fewer values."""
        width = check_integer(self.n_features_in_, "n_features_in_", low=1, high=MAX_WIDTH)
        with np.errstate(all="ignore"):
            self.transform(np.zeros((1, width), np.float32))

    def save(self, path: StrPath) -> None:
        """Write a folder of `config.json` and `arrays.safetensors`; it appears whole or not at all."""
        save_estimator(self, path, self.KIND)

    @classmethod
    def load(cls, path: Source) -> Self:
        """Read the folder that `save` wrote."""
        return load_estimator(cls, path, cls.KIND)


class CodesTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavedEstimator):
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
    """A transformer to codes that decode to rows."""

    @abstractmethod
    def decode(self, codes: ArrayLike) -> np.ndarray:
        """Rows (n, d) decoded from codes that `encode` gave."""

    def faiss_codes(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, bytes) uint8 of rows X (n, d) as an index made by `to_faiss` stores them."""
        return self.encode(X)

    def add_to(self, index: faiss.Index, X: ArrayLike) -> None:
        """Add rows X (n, d) to an index made by `to_faiss`, each under the code that `encode` gives it."""
        # not `index.add(X)`: the last bits of rotated rows, and by "ip" the lists, would depend on the batch
        add_codes(index, self.faiss_codes(X))

    def inverse_transform(self, codes: ArrayLike) -> np.ndarray:
        """`decode`, under scikit-learn's name."""
        return self.decode(codes)

    def distortion(self, X: ArrayLike) -> float:
        """Mean squared L2 distance between the rows of X (n, d) and their reconstructions."""
        check_is_fitted(self)
        X = validate_vectors(self, X)
        return float(np.square(X.astype(np.float64) - self.decode(self.encode(X))).sum(axis=1).mean())
