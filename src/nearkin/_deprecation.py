"""Old spellings: they work for one release, with a DeprecationWarning that says what to type."""

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from nearkin._fields import Record

P = ParamSpec("P")
T = TypeVar("T")

REMOVED_IN = "0.3"


def renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that `old` is now spelled `new`; both are shown as the user would type them."""
    warnings.warn(
        f"{old} is deprecated and will be removed in nearkin {REMOVED_IN}; type {new}",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def accepts_old(**new_names: str) -> Callable[[Callable[P, T]], Callable[..., T]]:
    """A decorator for functions and constructors: keyword `old` is taken as keyword `new`, with a warning.

    TypeError if both are given. scikit-learn reads an estimator's parameters from the undecorated signature.

    >>> @accepts_old(coarse="n_lists")
    ... def build(n_lists=0):
    ...     return n_lists
    """

    def decorate(function: Callable[P, T]) -> Callable[..., T]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> T:
            return function(*args, **_translated(kwargs, new_names))

        return call

    return decorate


def _translated(given: Record, new_names: Mapping[str, str]) -> Record:
    for old in given.keys() & new_names.keys():
        new = new_names[old]
        if new in given:
            raise TypeError(f"{old}= and {new}= are the same parameter; give {new}= only")
        renamed(f"{old}=", f"{new}=", stacklevel=4)
        given[new] = given.pop(old)
    return given
