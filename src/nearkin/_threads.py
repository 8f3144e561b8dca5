"""The number of threads of BLAS."""

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from threading import Lock

from threadpoolctl import ThreadpoolController

SHORT = 64**3  # multiply-adds of a product up to which OpenBLAS takes no second thread by itself
LONG = 20_000_000_000  # of one product, a second of one core, from which threads pay on any machine


def serial_products(multiply_adds: float, long: float = LONG) -> AbstractContextManager[object]:
    """While the block runs, BLAS has one thread if its largest product is smaller than `long`. Waiting BLAS threads
    spin: next to another program a fit of short products took 12 times as long on two threads as on one, a step of
    96 x 96 10 to 60 ms in place of .1 (2026-11). FAISS keeps its threads."""
    return nullcontext() if multiply_adds >= long else _ONE_THREAD


class _OneThread:
    """The first of the blocks that run at once, in any thread, limits every BLAS, the last one restores it."""

    def __init__(self) -> None:
        self._lock, self._blocks = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                self._limit = _controller(len(sys.modules)).limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._limit.restore_original_limits()


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Every BLAS of this process: SciPy's own, which numba calls, and those that `modules` imported modules loaded."""
    import scipy.linalg.cython_blas  # noqa: F401

    return ThreadpoolController()


_ONE_THREAD = _OneThread()
