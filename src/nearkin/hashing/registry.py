"""Every hasher of the library, once: its class, where it stands, and what it is called on the command line.

A new hasher is a module and an entry here; `nearkin`, `nearkin.hashing`, `load` and the pipeline's methods read it.
Nothing is imported, so that the names cost nothing.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """One hasher: the module that defines its class, its name as a method, and what it does in a few words."""

    module: str
    method: str
    summary: str


HASHERS = {  # class -> entry
    "RandomHyperplanes": Entry("nearkin.hashing.linear", "lsh", "bits: signs of random projections (data-blind)"),
    "PCAHash": Entry("nearkin.hashing.linear", "pca-hash", "bits: signs of the principal components"),
    "ITQ": Entry("nearkin.hashing.itq", "itq", "bits: principal components under a learned rotation"),
    "OnE": Entry(
        "nearkin.hashing.scq", "one", "bits: orthonormal encoder, compression and quantization learned together"
    ),
    "OgE": Entry(
        "nearkin.hashing.scq", "oge", "bits: orthogonal encoder, compression and quantization learned together"
    ),
    "SphericalHashing": Entry("nearkin.hashing.baselines", "spherical", "bits: inside or outside of learned spheres"),
    "KMeansHash": Entry(
        "nearkin.hashing.baselines", "kmeans-hash", "bits: k-means cells named so that near cells share bits"
    ),
    "BinaryAutoencoder": Entry("nearkin.hashing.baselines", "bae", "bits: binary autoencoder"),
}
