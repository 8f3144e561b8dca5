"""What is loaded when: names of a package on first use, torch only by those who learn with it."""

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk

STEPS = {  # in this order in one process: name, what runs, what must not have been loaded by then
    "the package": (
        "nk.embedding",
        "torch numba h5py sklearn scipy matplotlib langchain_core llama_index haystack nearkin.integrations",
    ),
    "search": ("search()", "torch sklearn numba matplotlib narwhals.pandas"),
    "hashing": ("nk.ITQ(n_bits=8, random_state=0).fit(X).encode(X[:2])", "torch numba"),
    "names of hashers": ("nk.OnE, nk.ITQ", "torch"),
    "quantization": ("nk.ProductQuantizer(2, 16, random_state=0).fit(X).encode(X[:2])", "torch"),
    "rotation": ("nk.Rotation(random_state=0).fit(X).transform(X[:2])", "torch"),
    "comparisons": ("nk.OrdinalEmbedding(random_state=0).fit([[0, 1, 2], [0, 1, 3], [1, 2, 3], [3, 2, 1]])", "torch"),
}
PROGRAM = """
import json, sys
import nearkin as nk

def search():
    from nearkin.cli.app import app
    try:
        app(["search", "idx", "Q.npy", "-k", "3", "--json"])
    except SystemExit as end:
        assert not end.code, end.code

found = {}
for name, (run, unwanted) in json.loads(sys.argv[1]).items():
    if name == "hashing":
        import numpy as np
        X = np.load("X.npy")
    eval(run)
    found[name] = [module for module in unwanted.split() if module in sys.modules]
print(json.dumps(found))
"""


def test_first_use_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    nk.Index.build(X, nk.ProductQuantizer(2, 16, rotation="givens-greedy", random_state=0)).save(tmp_path / "idx")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Q.npy", X[:2])
    arguments = [sys.executable, "-c", PROGRAM, json.dumps(STEPS)]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {step: [] for step in STEPS}


def test_names_and_modules_of_a_lazy_package() -> None:
    assert nk.embedding.OrdinalEmbedding is nk.OrdinalEmbedding
    assert nk.embedding.TwoTower is nk.TwoTower
    assert nk.embedding.all_pairs.AllPairsLoss is nk.embedding.AllPairsLoss
    for package, name, known in ((nk.embedding, "Ordinal", "OrdinalEmbedding"), (nk, "Indx", "Index")):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'; public names are .*{known}"):
            getattr(package, name)


def test_every_package_lists_its_public_names_alone() -> None:
    """Tab completion showed the modules and imports of packages that load eagerly, and lacked what they load lazily."""
    names = (found.name for found in pkgutil.walk_packages(nk.__path__, "nearkin.") if found.ispkg)
    packages = [import_module(name) for name in names if "._" not in name]
    assert len(packages) > 20
    for package in packages:
        assert dir(package) == sorted(package.__all__), package
        source = Path(str(package.__file__)).read_text(encoding="utf-8")
        for name in package.__all__:
            assert f"import {name} as {name}\n" in source or name in vars(package), f"{package.__name__}.{name}"
    assert {"IndexingLayer", "optimizers"} < set(dir(nk.quantization))
    assert isinstance(nk.quantization.IndexingLayer, type)
