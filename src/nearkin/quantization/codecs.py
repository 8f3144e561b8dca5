"""The codecs in one table, by their names as methods of `nearkin compress`.

`best` compares some of them at a size in bytes; `Index.build(X, n_bytes)` and `nearkin sweep` take its choice.
"""

import math
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

from nearkin._check import check_integer
from nearkin._types import Seed
from nearkin.quantization.axis import AxisQuantizer
from nearkin.quantization.faiss_bridge import code_bits
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.residual import ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer

SUMS = {"product-residual": 4, "product-residual-long": 8}  # codebooks of a part, about: more are slower and find more
SCALARS = {"int4": 4, "int6": 6, "int8": 8, "float16": 16}  # bits of a column
HASHERS = {
    "lsh": "RandomHyperplanes",
    "signs": "Signs",
    "pca-hash": "PCAHash",
    "itq": "ITQ",
    "one": "OnE",
    "oge": "OgE",
}
NORMS = "-norms"  # ending of the names of codecs with a byte for the norm of each vector
ALIASES = {"pq": "none", "opq": "product", "rq": "residual", "lsq": "residual", "sq8": "int8"}  # the field's names
_ROTATIONS = ("givens-random", "givens-greedy", "givens-steepest", "cayley")
_LONGEST = 32  # most codebooks of a residual code: longer ones are searched too slowly
# Seconds of two cores for each column of a row and of a centroid that it is compared with. Predicted seconds of 22 fits
# of 64 to 512 columns in 8 to 16 bytes were within a factor of 2.5 of those of an AMD EPYC (2026-11-26).
_LEARNING, _ENCODING = 6e-10, 6e-11
_OVERHEAD = 400  # columns more, for what does not depend on their number


@dataclass(frozen=True)
class Size:
    """The size of a code, and what searches it: bytes, centroids of a codebook, inverted lists, metric; and a seed.

    >>> Size(8).n_codes, Size(8, n_centroids=16).n_codes
    (8, 16)
    """

    n_bytes: int = 16
    n_centroids: int = 256
    n_lists: int = 0
    metric: str = "l2"
    random_state: Seed = None

    @property
    def n_codes(self) -> int:
        """Numbers of centroids that fill the bytes; ValueError if no whole number does."""
        n_bytes = check_integer(self.n_bytes, "n_bytes", low=1)
        bits = code_bits(check_integer(self.n_centroids, "n_centroids", low=2, high=65536))
        if 8 * n_bytes % bits:
            more = f"give a multiple of {bits // math.gcd(bits, 8)} bytes, or 16 or 256 centroids"
            raise ValueError(
                f"n_bytes is {n_bytes}, no whole number of {bits}-bit codes ({self.n_centroids} centroids); {more}"
            )
        return 8 * n_bytes // bits

    @property
    def sums(self) -> dict[str, tuple[int, int]]:
        """Parts, and codebooks of each part, of the sums of centroids of at most this size, by name."""
        made: dict[str, tuple[int, int]] = {}
        for name, target in SUMS.items():
            used = [chain for _, chain in made.values()]
            chain = _chain(self.n_codes, target, used)
            if chain not in used and (splits := self.n_codes // chain) > 1:
                made[name] = splits, chain
        return made | ({"residual": (1, self.n_codes)} if 1 < self.n_codes <= _LONGEST else {})


class Codec(NamedTuple):
    """What makes the unfitted quantizer of a `Size`; the metrics of its codes, the default first; centroids that a part
    of a vector is compared with at a time; and bytes for the norm, 1 or 0."""

    name: str
    make: Callable[[Size], Any]
    metrics: tuple[str, ...] = ("l2", "ip", "cosine")
    compared: int = 256
    norm: int = 0

    def unfitted(self, size: Size, **settings: object) -> BaseEstimator:
        """The quantizer, with those of the settings that it has; ValueError if there is none of this size."""
        quantizer = self.make(self._own(size))
        for name in ("n_centroids", "n_lists"):
            if getattr(size, name) != getattr(Size, name) and name not in quantizer.get_params():
                raise ValueError(f"{name} is for product and residual codes; leave it out with method {self.name}")
        return quantizer.set_params(**{name: settings[name] for name in settings.keys() & quantizer.get_params()})

    def chain(self, size: Size) -> int:
        """The cost of a search: how many centroids are added up in a part of a vector."""
        return self._own(size).sums.get(self.name.removesuffix(NORMS), (1, 1))[1]

    def seconds(self, size: Size, learned: int, encoded: int, d: int) -> float:
        """Predicted seconds of two cores to train on and to encode numbers of vectors of d columns; a rotation takes as
        long as a codebook."""
        chain = self.chain(size)
        return ((chain + 1) * learned * _LEARNING + chain * encoded * _ENCODING) * self.compared * (d + _OVERHEAD)

    def _own(self, size: Size) -> Size:
        return replace(size, n_bytes=size.n_bytes - self.norm)


def _product(rotation: str | None, size: Size) -> ProductQuantizer:
    more: Any = {"n_lists": size.n_lists, "random_state": size.random_state}
    return ProductQuantizer(size.n_codes, size.n_centroids, rotation, **more)


def _sum(name: str, size: Size) -> ProductResidualQuantizer | ResidualQuantizer:
    if name not in size.sums:
        raise ValueError(f"n_bytes is {size.n_bytes}; {name} has no such code: residual has 2 to {_LONGEST} codebooks")
    (splits, chain), metric = size.sums[name], "l2" if size.metric == "l2" else "ip"
    more: Any = {"metric": metric, "n_lists": size.n_lists, "random_state": size.random_state}
    if name == "residual":
        return ResidualQuantizer(chain, size.n_centroids, **more)
    return ProductResidualQuantizer(splits, chain, size.n_centroids, **more)


def _hasher(name: str, size: Size) -> Any:
    return getattr(import_module("nearkin.hashing"), name)(n_bits=8 * size.n_bytes, random_state=size.random_state)


def _chain(units: int, target: int, used: Container[int]) -> int:
    """How many codebooks, about `target`, sums have that leave the fewest of the units over: `target` or one more or
    less, or, where those leave any, others up to half more that were not used."""
    chain = min((target, max(2, target - 1), target + 1), key=lambda c: units % c)
    if not units % chain or units < 2 * chain:
        return chain
    others = (c for c in range(-(-5 * target // 8), 3 * target // 2 + 1) if c > 1 and c not in used)
    return min(others, key=lambda c: (units % c, abs(math.log(c / target))), default=chain)


_PLAIN = (
    Codec("product", partial(_product, "procrustes")),
    Codec("none", partial(_product, None)),
    Codec("axes", lambda size: AxisQuantizer(size.n_bytes), compared=64),
    *(Codec(name, partial(_sum, name)) for name in (*SUMS, "residual")),
)
CODECS = {
    codec.name: codec
    for codec in (
        *_PLAIN,
        *(one._replace(name=one.name + NORMS, metrics=("l2", "ip"), norm=1) for one in _PLAIN if one.name != "none"),
        *(Codec(name, lambda _, bits=bits: ScalarQuantizer(bits), compared=16) for name, bits in SCALARS.items()),
        *(Codec(name, partial(_product, name)) for name in _ROTATIONS),
        *(Codec(name, partial(_hasher, made), ("hamming",)) for name, made in HASHERS.items()),
    )
}


def candidates(n_bytes: int, d: int, *, norms: bool, half: bool = True) -> list[str]:
    """The codecs of at most `n_bytes` a vector of d columns, the cheapest first, a byte a column at most; floats of
    `half` precision, or 8 bits where these do not suffice, if that many bytes are there. With `norms`, for vectors of
    different norms, a byte may be the norm's."""
    size = Size(min(n_bytes, d))
    axes = ["axes"] if d <= 8 * n_bytes else []
    fitting = [name for name, bits in SCALARS.items() if bits * d <= 8 * n_bytes and (half or name != "float16")]
    if "float16" in fitting:  # nothing finds more
        return ["float16"]
    names = ["product", "none", *axes, *fitting[-1:], *size.sums]
    if norms and size.n_bytes > 1:
        shorter = replace(size, n_bytes=size.n_bytes - 1).sums
        names += [name + NORMS for name in ("product", *axes, *shorter)]
    return sorted(names, key=lambda name: CODECS[name].chain(size))
