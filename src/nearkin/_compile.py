"""Compilation of loops by numba, cached on disk where possible."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher


class _Cache(FunctionCache):
    """Numba's cache on disk. A full disk or a file of another user costs a compilation, not the call."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with suppress(OSError):
            return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True, **options)`, but without a cache where no folder can be written, as in a container
    without HOME: numba then raises RuntimeError when a function is decorated."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = njit(**options)(function)
        if isinstance(compiled, Dispatcher):  # a plain function under NUMBA_DISABLE_JIT=1
            try:
                compiled._cache = _Cache(function)
            except RuntimeError as error:
                if "no locator available" not in str(error):
                    raise
        return compiled

    return decorate
