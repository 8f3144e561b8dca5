"""What is loaded when: names of a package on first use, torch only by those who learn with it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk

FIRST_FIT = """
import numpy as np, sys
import nearkin as nk
X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
{fit}
assert {unwanted!r} not in sys.modules, "{unwanted} is loaded"
"""


@pytest.mark.parametrize(
    ("fit", "unwanted"),
    [
        ("nk.OrdinalEmbedding(random_state=0).fit([[0, 1, 2], [0, 1, 3], [1, 2, 3], [3, 2, 1]])", "torch"),
        ("nk.ITQ(n_bits=8, random_state=0).fit(X).encode(X[:2])", "torch"),
        ("nk.ITQ(n_bits=8, random_state=0).fit(X).encode(X[:2])", "numba"),
        ("nk.ProductQuantizer(2, 16, random_state=0).fit(X).encode(X[:2])", "torch"),
        ("nk.Rotation(random_state=0).fit(X).transform(X[:2])", "torch"),
    ],
)
def test_first_use_loads_no_more_than_it_needs(fit: str, unwanted: str) -> None:
    subprocess.run([sys.executable, "-c", FIRST_FIT.format(fit=fit, unwanted=unwanted)], check=True)


SEARCH = """
import sys
from nearkin.cli.app import app
try:
    app(["search", "idx", "Q.npy", "-k", "3", "--json"])
except SystemExit as end:
    assert not end.code, end.code
slow = ("torch", "sklearn", "numba", "matplotlib", "narwhals.pandas")
print([name for name in slow if name in sys.modules], file=sys.stderr)
"""


def test_search_loads_neither_torch_nor_scikit_learn(tmp_path: Path, rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 8)).astype(np.float32)
    quantizer = nk.ProductQuantizer(2, 16, rotation="givens-greedy", random_state=0)
    nk.Index.build(X, quantizer).save(tmp_path / "idx")
    np.save(tmp_path / "Q.npy", X[:2])
    done = subprocess.run([sys.executable, "-c", SEARCH], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


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
