"""Reading a saved hasher whose class is not known before."""

import os

from nearkin._storage import read_config
from nearkin.hashing.base import AbstractHasher
from nearkin.hashing.binary_autoencoder import BinaryAutoencoder
from nearkin.hashing.itq import ITQ
from nearkin.hashing.kmeans_hash import KMeansHash
from nearkin.hashing.oge import OgE
from nearkin.hashing.one import OnE
from nearkin.hashing.pca_hash import PCAHash
from nearkin.hashing.random_hyperplanes import RandomHyperplanes
from nearkin.hashing.spherical import SphericalHashing

HASHERS: dict[str, type[AbstractHasher]] = {
    hasher.__name__: hasher
    for hasher in (BinaryAutoencoder, ITQ, KMeansHash, OgE, OnE, PCAHash, RandomHyperplanes, SphericalHashing)
}


def load(path: str | os.PathLike) -> AbstractHasher:
    """Read the hasher of any class that `save` wrote to the folder `path`; ValueError if it holds no known hasher."""
    name = read_config(path, "hasher")["class"]
    if name not in HASHERS:
        raise ValueError(f"{path} holds a hasher {name!r}; this nearkin knows {', '.join(HASHERS)}")
    return HASHERS[name].load(path)
