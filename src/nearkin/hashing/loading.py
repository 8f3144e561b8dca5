"""Reading a saved hasher whose class is not known before."""

import os
from importlib import import_module

from nearkin._storage import SavedArrays, read_saved
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.registry import HASHERS


def load(path: str | os.PathLike | SavedArrays) -> AbstractHasher:
    """Read the hasher of any class that `save` wrote to the folder `path`; ValueError if it holds no known hasher."""
    found = read_saved(path, "hasher")
    name = found.config.get("class")
    if name not in HASHERS:
        raise ValueError(f"{found.path} holds a hasher {name!r}; this nearkin knows {', '.join(sorted(HASHERS))}")
    return getattr(import_module(HASHERS[name].module), name).load(found)
