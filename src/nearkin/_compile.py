"""Compilation of loops by numba, cached on disk where possible."""

from collections.abc import Callable
from typing import Any

from numba import njit


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True, **options)`, but without a cache where no folder can be written, as in a container
    without HOME: numba then raises RuntimeError when a function is decorated."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            return njit(**options)(function)

    return decorate
