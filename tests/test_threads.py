import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from nearkin import ProductQuantizer, Rotation
from nearkin._threads import serial_products
from nearkin.quantization import ResidualQuantizer, residual

CONTROLLER = ThreadpoolController().select(user_api="blas")


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in CONTROLLER.info()}


@pytest.mark.parametrize("given", [{}, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "active"}])
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


@pytest.mark.parametrize("made", [ProductQuantizer(4, 16, max_iter=2), ResidualQuantizer(2, 16, max_iter=2)])
def test_fits_of_few_rows_do_not_spin(made, rng):
    """On a busy machine two threads of BLAS made a fit of GIST take 235 s instead of 13."""
    seen: set[int] = set()
    with threadpool_limits(2, "blas"):
        made.fit(rng.normal(size=(500, 16)).astype(np.float32), callback=lambda *_: seen.update(blas_threads()))
    assert seen == {1}


def test_codes_learn_the_order_of_known_rows_without_spinning(rng, monkeypatch):
    seen: set[int] = set()
    ordered = residual.ordered

    def watched(*given):
        seen.update(blas_threads())
        return ordered(*given)

    monkeypatch.setattr(residual, "ordered", watched)
    with threadpool_limits(2, "blas"):
        ResidualQuantizer(2, 16, max_iter=2, known=True).fit(rng.normal(size=(500, 16)))
    assert seen == {1}


def test_a_rotation_is_learned_without_spinning(rng):
    seen: set[int] = set()
    with threadpool_limits(2, "blas"):
        X = rng.normal(size=(600, 8)) * np.arange(1, 9)
        Rotation("sign", max_iter=1).fit(X, callback=lambda *_: seen.update(blas_threads()))
    assert seen == {1}
