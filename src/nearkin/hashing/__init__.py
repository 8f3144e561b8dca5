"""Vectors to bits: OnE and OgE, which compress and quantize at once, beside the classics they are compared with.

All share one contract: `fit(X)`, `project(X)` (real values whose signs are the code), `encode(X)` (packed uint8),
`quantization_error(X)`, `to_faiss()`, `search`, `save` and `load`.
"""

from nearkin.hashing.binary_autoencoder import BinaryAutoencoder as BinaryAutoencoder
from nearkin.hashing.bits import pack_signs as pack_signs
from nearkin.hashing.bits import unpack_bits as unpack_bits
from nearkin.hashing.bits import unpack_signs as unpack_signs
from nearkin.hashing.itq import ITQ as ITQ
from nearkin.hashing.kmeans_hash import KMeansHash as KMeansHash
from nearkin.hashing.oge import OgE as OgE
from nearkin.hashing.one import OnE as OnE
from nearkin.hashing.pca_hash import PCAHash as PCAHash
from nearkin.hashing.random_hyperplanes import RandomHyperplanes as RandomHyperplanes
from nearkin.hashing.scale_search import ScaleSearch as ScaleSearch
from nearkin.hashing.scale_search import exact_neighbours as exact_neighbours
from nearkin.hashing.scale_search import search_scale as search_scale
from nearkin.hashing.spherical import SphericalHashing as SphericalHashing
from nearkin.hashing.stored import load as load
