"""What holds from one kind of CPU to another (docs/promises.md): a saved folder gives the same codes and neighbours.

A child process runs the kernels of an older CPU of the same family: OpenBLAS, FAISS, PyTorch, NumPy and numba each
have a variable for it.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer, ScalarQuantizer

OLDER = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "FAISS_SIMD_LEVEL": "NONE",
    "ATEN_CPU_CAPABILITY": "default",
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CACHE_DIR": "",  # compiled for the other kind
    "NPY_DISABLE_CPU_FEATURES": "X86_V3",
}
KINDS = {
    "product": lambda: nk.ProductQuantizer(4, 32, max_iter=3, random_state=0),
    "product 4 bits": lambda: nk.ProductQuantizer(8, 16, max_iter=3, random_state=0),
    "product lists": lambda: nk.ProductQuantizer(4, 32, n_lists=4, max_iter=3, random_state=0),
    "residual": lambda: ResidualQuantizer(3, 32, max_iter=2, random_state=0),
    "product residual": lambda: ProductResidualQuantizer(2, 2, 32, max_iter=2, random_state=0),
    "scalar": lambda: ScalarQuantizer(8),
    "ITQ": lambda: nk.ITQ(16, random_state=0),
}
ANSWERS = """
import json, sys
import numpy as np
import nearkin as nk
X = np.load("X.npy")
found = {}
for name in json.loads(sys.argv[1]):
    index = nk.Index.load(name)
    scores, ids = index.search(X[:50] + np.float32(0.1), 5)
    found[name + " codes"], found[name + " scores"], found[name + " ids"] = index.quantizer.encode(X), scores, ids
np.savez("other.npz", **found)
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the older kernels are those of x86-64")
def test_an_older_cpu_gives_the_codes_and_neighbours_of_this_one(tmp_path: Path, rng: np.random.Generator) -> None:
    X = (rng.normal(size=(600, 16)) @ rng.normal(size=(16, 16))).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    for name, make in KINDS.items():
        nk.Index.build(X, make().fit(X), metric="hamming" if name == "ITQ" else "l2").save(tmp_path / name)
    older = OLDER | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    arguments = [sys.executable, "-c", ANSWERS, json.dumps(list(KINDS))]
    subprocess.run(arguments, cwd=tmp_path, env=os.environ | older, check=True, timeout=600)
    other = np.load(tmp_path / "other.npz")
    for name in KINDS:
        index = nk.Index.load(tmp_path / name)
        scores, ids = index.search(X[:50] + np.float32(0.1), 5)
        assert index.quantizer is not None
        np.testing.assert_array_equal(index.quantizer.encode(X), other[f"{name} codes"], name)
        np.testing.assert_allclose(scores, other[f"{name} scores"], rtol=1e-4, atol=1e-3, err_msg=name)
        swapped = ids != other[f"{name} ids"]  # rows whose scores differ by rounding may change places
        assert swapped.mean() < 0.01, name
