"""The registry of hashers: class, module, and name on the command line.

A new hasher is a module and an entry here; `nearkin`, `nearkin.hashing`, `load` and the methods of jobs read it.
Nothing is imported, so that reading the names is cheap.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """One hasher: the module that defines its class and its name as a method."""

    module: str
    method: str


HASHERS = {  # class -> entry
    "RandomHyperplanes": Entry("nearkin.hashing.linear", "lsh"),
    "Signs": Entry("nearkin.hashing.linear", "signs"),
    "PCAHash": Entry("nearkin.hashing.linear", "pca-hash"),
    "ITQ": Entry("nearkin.hashing.itq", "itq"),
    "OnE": Entry("nearkin.hashing.scq", "one"),
    "OgE": Entry("nearkin.hashing.scq", "oge"),
}
