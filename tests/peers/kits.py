"""A peer's test files, loaded from where `make kits` put them."""

import importlib
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest


def found(peer: str, file: str) -> Path:
    """Where a test file or folder of `peer` is; without it the tests that ask for it skip."""
    if "NEARKIN_KITS" not in os.environ:
        pytest.skip("the peers' own tests: run by `make kits`", allow_module_level=True)
    path = Path(os.environ["NEARKIN_KITS"]) / "sources" / peer / file
    if not path.exists():
        pytest.skip(f"no {peer}/{file} could be had", allow_module_level=True)
    warnings.simplefilter("default")  # while the adapter is imported
    return path


def load(peer: str, file: str) -> ModuleType:
    """The module of a test file of `peer`, in a package of its own; its neighbours are found by plain names too."""
    path = found(peer, file)
    package = sys.modules.setdefault(f"kit_{peer}", ModuleType(f"kit_{peer}"))
    package.__path__ = [str(path.parent)]
    sys.path.append(str(path.parent))
    return importlib.import_module(f"kit_{peer}.{path.stem}")


def tests_of(module: ModuleType) -> dict[str, object]:
    """Its names, for an adapter's own: test functions, classes and fixtures."""
    return {name: value for name, value in vars(module).items() if not name.startswith("__")}
