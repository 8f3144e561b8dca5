import subprocess
import sys

import pytest

import nearkin


def test_every_public_name_is_there():
    for name in nearkin.__all__:
        assert getattr(nearkin, name) is not None
    assert set(dir(nearkin)) == set(nearkin.__all__)


def test_an_unknown_name_lists_the_known():
    with pytest.raises(AttributeError, match=r"no attribute 'Indx'; public names are .*Index"):
        nearkin.Indx  # noqa: B018


def test_import_loads_nothing_heavy():
    heavy = "torch", "faiss", "sklearn", "scipy", "numba", "matplotlib"
    code = f"import sys, nearkin; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
