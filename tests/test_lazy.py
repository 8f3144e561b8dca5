"""What is loaded when: names of a package on first use, torch only by those who learn with it."""

import subprocess
import sys

import pytest

import nearkin as nk

FIRST_FIT = """
import numpy as np, sys
import nearkin as nk
X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
{fit}
assert "torch" not in sys.modules, "torch is loaded"
"""


@pytest.mark.parametrize(
    "fit",
    [
        "nk.OrdinalEmbedding(random_state=0).fit([[0, 1, 2], [0, 1, 3], [1, 2, 3], [3, 2, 1]])",
        "nk.ITQ(n_bits=8, random_state=0).fit(X).encode(X[:2])",
    ],
)
def test_first_use_loads_no_torch(fit: str) -> None:
    subprocess.run([sys.executable, "-c", FIRST_FIT.format(fit=fit)], check=True)


def test_names_and_modules_of_a_lazy_package() -> None:
    assert nk.embedding.OrdinalEmbedding is nk.OrdinalEmbedding
    assert nk.embedding.TwoTower is nk.TwoTower
    assert nk.embedding.all_pairs.AllPairsLoss is nk.embedding.AllPairsLoss
    assert dir(nk.embedding) == nk.embedding.__all__
    with pytest.raises(AttributeError, match=r"no attribute 'Ordinal'; public names are .*OrdinalEmbedding"):
        nk.embedding.Ordinal  # noqa: B018


def test_importing_a_lazy_package_loads_nothing() -> None:
    code = "import sys, nearkin.embedding; print([name for name in ('torch', 'numba') if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
