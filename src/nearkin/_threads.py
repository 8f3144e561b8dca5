"""Threads of matrix products, where waiting for each other costs more than they save."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from contextlib import AbstractContextManager, nullcontext

from threadpoolctl import ThreadpoolController

_LONG = 20_000_000_000  # multiply-adds of one product, a second of one core, from which threads pay on any machine


def serial_products(multiply_adds: float, long: float = _LONG) -> AbstractContextManager[object]:
    """While the block runs, BLAS has one thread if its largest product is smaller than `long`.

    The threads of BLAS spin while they wait. Where another program has one of two cores, a fit of thousands of short
    products took 12 times the processor time on two threads and 12 times as long as on one. FAISS keeps its threads.
    The number of threads is the process's: meanwhile other threads' products have one thread too.
    """
    if multiply_adds >= long:
        return nullcontext()
    return ThreadpoolController().limit(limits=1, user_api="blas")
