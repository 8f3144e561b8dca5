"""Compiled code on disk belongs to the sources that it was compiled from, whatever their files are called."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from nearkin.embedding.ordinal import compiling, kernels

INNER = """
from nearkin.embedding.ordinal.compiling import inlined

@inlined
def twice(x):
    return {factor} * x
"""
OUTER = """
from nearkin.embedding.ordinal.compiling import kernel
from any_inner_name import twice

@kernel
def double(x):
    return twice(x)
"""


def load(folder: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_an_edit_of_an_inlined_function_is_compiled_again(tmp_path, monkeypatch):
    """The old stamp took the files that match ordinal_*.py: a file of another name went on running as it was."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("any_inner_name", "any_outer_name"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    found = []
    for factor in (2, 3):
        inner = tmp_path / "any_inner_name.py"
        inner.write_text(INNER.format(factor=factor), encoding="utf-8")
        (tmp_path / "any_outer_name.py").write_text(OUTER, encoding="utf-8")
        os.utime(tmp_path / "any_outer_name.py", (1, 1))  # the kernel's own file stays as it was
        load(tmp_path, "any_inner_name")
        found.append(load(tmp_path, "any_outer_name").double(5.0))
    assert found == [10.0, 15.0]


def test_the_stamp_covers_the_losses_and_the_flags():
    stamp = compiling.source_stamp(kernels.sum_gradients.py_func)
    assert kernels.sum_gradients._cache._cache_file._source_stamp == stamp
    assert stamp != compiling.source_stamp(np.linalg.norm.__wrapped__)
