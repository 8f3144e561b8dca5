"""Reading a saved hasher whose class is not known before."""

import os
from importlib import import_module

from nearkin._storage import read_config
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.registry import HASHERS


def load(path: str | os.PathLike) -> AbstractHasher:
    """Read the hasher of any class that `save` wrote to the folder `path`; ValueError if it holds no known hasher."""
    name = read_config(path, "hasher")["class"]
    if name not in HASHERS:
        raise ValueError(f"{path} holds a hasher {name!r}; this nearkin knows {', '.join(sorted(HASHERS))}")
    return getattr(import_module(HASHERS[name].module), name).load(path)
