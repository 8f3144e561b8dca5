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


@each("given", [{}, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "active"}])
def test_waiting_threads_sleep_unless_the_environment_says_otherwise(given):
    names = "GOMP_SPINCOUNT", "OPENBLAS_THREAD_TIMEOUT"
    plain = {name: value for name, value in os.environ.items() if name not in (*names, "OMP_WAIT_POLICY")}
    code = f"import nearkin, os; print(*(os.environ.get(name) for name in {names}))"
    found = subprocess.run([sys.executable, "-c", code], env=plain | given, capture_output=True, text=True, check=True)
    wanted = [None, None] if "OMP_WAIT_POLICY" in given else [given.get(names[0], "10000"), "10"]
    assert found.stdout.split() == [str(value) for value in wanted]


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
