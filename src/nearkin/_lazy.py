"""Names of a package that are loaded on first use: `import nearkin.embedding` then costs nothing."""

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^(?: {4})?from (\S+) import (\w+) as \2$", re.MULTILINE)


def lazily(package: str, file: str, *more: str) -> None:
    """Give `package` a `__getattr__`, `__dir__` and `__all__` of the names that its `file` imports under their own name
    (`from ... import x as x`), at once or under `TYPE_CHECKING`, and `more`.

    Type checkers read these lines too, so a public name is written once. A module of the package is an attribute,
    as it would be if it were loaded.
    """
    homes = {name: home for home, name in _IMPORT.findall(Path(file).read_text(encoding="utf-8"))}
    public = [*sorted(homes), *more]

    def get(name: str) -> Any:
        if name in homes and homes[name] != package:
            value = getattr(import_module(homes[name]), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; public names are {', '.join(public)}")
        setattr(sys.modules[package], name, value)  # found once, then an ordinary attribute
        return value

    vars(sys.modules[package]).update(__getattr__=get, __dir__=lambda: public, __all__=public)
