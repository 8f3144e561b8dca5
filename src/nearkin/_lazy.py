"""Names of a package that are loaded on first use: `import nearkin.embedding` then costs nothing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of `package`, whose public names stand in `homes`: name -> its module.

    A module of the package is an attribute too, as it would be if it were loaded. Type checkers read the same names
    under `TYPE_CHECKING` in the package's `__init__`.
    """
    public = sorted(homes)

    def get(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(homes[name]), name)
        elif not name.startswith("__") and find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; public names are {', '.join(public)}")
        setattr(sys.modules[package], name, value)  # found once, then an ordinary attribute
        return value

    return get, lambda: public, public
