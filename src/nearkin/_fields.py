"""Records of named values, as types; nothing is loaded for them, so the command line can name them."""

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]
"""Named values of any kind: a callback's record, the content of a file of JSON, a function's options."""

Fields: TypeAlias = Mapping[str, Any]
"""A record that is only read."""

Extra: TypeAlias = Any
"""An object of a package that is an extra: its types are not there to be named."""

StrPath: TypeAlias = str | os.PathLike[str]
"""The name of a file or folder."""

FileOrFrame: TypeAlias = StrPath | Extra
"""A file, or a DataFrame of any library."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number and what it counts, as messages write it.

    >>> counted(1, "row"), counted(3197, "row"), counted(2, "index", "indices")
    ('1 row', '3,197 rows', '2 indices')
    """
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
