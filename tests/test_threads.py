import os
import subprocess
import sys

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

from nearkin import ProductQuantizer, Rotation
from nearkin._threads import serial_products
from nearkin.quantization import ResidualQuantizer, residual
from tests.covering import each

CONTROLLER = ThreadpoolController().select(user_api="blas")


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in CONTROLLER.info()}


NAMES = "GOMP_SPINCOUNT", "OPENBLAS_THREAD_TIMEOUT", "OMP_NUM_THREADS", "KMP_DUPLICATE_LIB_OK"


@each(
    ("system", "given", "wanted"),
    [
        ("linux", {}, ("10000", "10", None, None)),
        ("linux", {"GOMP_SPINCOUNT": "7"}, ("7", "10", None, None)),
        ("linux", {"OMP_WAIT_POLICY": "active"}, (None, None, None, None)),
        ("darwin", {}, ("10000", "10", "1", "TRUE")),
        ("darwin", {"OMP_NUM_THREADS": "4"}, ("10000", "10", "4", None)),
    ],
)
def test_waiting_threads_sleep_and_two_openmp_of_macos_get_one_unless_the_environment_says_otherwise(
    system, given, wanted
):
    plain = {name: value for name, value in os.environ.items() if name not in (*NAMES, "OMP_WAIT_POLICY")}
    code = f"import os, sys; sys.platform = {system!r}; import nearkin; print(*map(os.environ.get, sys.argv[1:]))"
    printed = subprocess.check_output([sys.executable, "-c", code, *NAMES], text=True, env=plain | given)
    assert printed.split() == [str(value) for value in wanted]


def test_short_products_run_on_one_thread_and_long_ones_do_not():
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        with serial_products(1e6):
            with serial_products(1e6):  # in a thread, or by what is called
                pass
            assert blas_threads() == {1}
        assert blas_threads() == before
        with serial_products(1e12):
            assert blas_threads() == before


@each("known", [False, True])
def test_fits_of_few_rows_do_not_spin(known, rng, monkeypatch):
    """On a busy machine two threads of BLAS made a fit of GIST take 235 s instead of 13."""
    seen: set[int] = set()
    look, ordered = (lambda *_: seen.update(blas_threads())), residual.ordered
    monkeypatch.setattr(residual, "ordered", lambda *given: look() or ordered(*given))
    X = rng.normal(size=(500, 8)) * np.arange(1, 9)
    with threadpool_limits(2, "blas"):
        if known:
            ResidualQuantizer(2, 16, max_iter=2, known=True).fit(X)
        else:
            for made in (
                ProductQuantizer(4, 16, max_iter=2),
                ResidualQuantizer(2, 16, max_iter=2),
                Rotation("sign", max_iter=1),
            ):
                made.fit(X, callback=look)
    assert seen == {1}
