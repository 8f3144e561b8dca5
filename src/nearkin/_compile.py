"""Compilation of loops by numba, cached on disk where possible."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from threading import Lock
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from threadpoolctl import ThreadpoolController


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


SERIAL = 64**3  # multiply-adds of a product up to which OpenBLAS takes no second thread by itself
_TURN = Lock()  # of those that change the number of threads and restore it


def one_thread(multiply_adds: int) -> AbstractContextManager[None]:
    """While the block runs, the BLAS that compiled loops call has one thread, if a product has that many multiply-adds.
    Its threads spin: with another core busy, a step of 96 x 96 took 10 to 60 ms in place of .1 (2026-11)."""
    return _one_thread() if multiply_adds > SERIAL else nullcontext()


@contextmanager
def _one_thread() -> Iterator[None]:
    with _TURN:
        before = [(library, library.num_threads) for library in _libraries()]
        try:
            for library, _ in before:
                library.set_num_threads(1)
            yield
        finally:
            for library, number in before:
                library.set_num_threads(number)


@cache
def _libraries() -> list[Any]:
    """SciPy's own BLAS, which numba calls; every BLAS where SciPy shares one with others."""
    import scipy.linalg.cython_blas  # noqa: F401  # which loads it

    found = [one for one in ThreadpoolController().lib_controllers if one.user_api == "blas"]
    return [one for one in found if "scipy.libs" in one.filepath] or found
