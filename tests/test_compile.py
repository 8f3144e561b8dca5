"""Compiled loops run where no cache folder can be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "nearkin"
USE = """
import numpy as np
from nearkin.embedding.ordinal import losses  # stamps its cache
from nearkin.orthogonal.small_step import product
C = np.zeros((2, 2))
product(np.eye(2), np.ones((2, 2)), C)
print(C.sum(), type(product._cache).__name__)
"""


def run_read_only(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python on a copy of nearkin whose cache folders cannot be made, without HOME."""
    shutil.copytree(SRC, folder / "nearkin", ignore=shutil.ignore_patterns("__pycache__"))
    for package in {path.parent for path in (folder / "nearkin").rglob("*.py")}:
        (package / "__pycache__").touch()  # a file: no folder can be made there, even by root
    drop = "NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "MPLCONFIGDIR"
    env = {name: value for name, value in os.environ.items() if name not in drop}
    env |= {"PYTHONPATH": str(folder), "HOME": os.devnull}
    return subprocess.run([sys.executable, *words], env=env, capture_output=True, text=True)


def test_a_read_only_package_without_home_compiles_in_memory(tmp_path: Path) -> None:
    run = run_read_only(tmp_path, "-c", USE)
    assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.split() == ["4.0", "NullCache"]


def test_every_loop_uses_the_one_decorator() -> None:
    plain = [path for path in SRC.rglob("*.py") if "cache=True" in path.read_text(encoding="utf-8")]
    assert plain == [SRC / "_compile.py"]  # its docstring
