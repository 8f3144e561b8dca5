"""The codes that `best` and `nearkin sweep` compare at a size, by their names as methods of `nearkin compress`."""

import math
from collections.abc import Callable, Container
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

from sklearn.base import BaseEstimator

from nearkin._types import Seed
from nearkin.contracts import VectorCodes
from nearkin.quantization.axis import AxisQuantizer
from nearkin.quantization.faiss_bridge import code_bits
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.residual import ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer
from nearkin.quantization.sized import AxisCode, ProductCode, SizedCode, WithNorms

PRODUCT, PLAIN, AXES, RESIDUAL = "product", "none", "axes", "residual"
SCALARS = {"int4": 4, "int6": 6, "int8": 8, "float16": 16}  # bits of a column
SUMS = {"product-residual": 4, "product-residual-long": 8}  # codebooks of a part, about: more are slower and find more
NORMS = "-norms"  # ending of the names of codes with a byte for the norm of each row
NAMES = (PRODUCT, PLAIN, AXES, *SCALARS, *(n + e for e in ("", NORMS) for n in (*SUMS, RESIDUAL)))

LONGEST = 32  # most codebooks of a residual code: longer ones are searched too slowly
# Seconds of two cores for each column of a row and of a centroid that it is compared with. Predicted seconds of 22 fits
# of 64 to 512 columns in 8 to 16 bytes were within a factor of 2.5 of those of an AMD EPYC (2026-11-26).
_LEARNING, _ENCODING = 6e-10, 6e-11
_OVERHEAD = 400  # columns more, for what does not depend on their number
Made: TypeAlias = VectorCodes | SizedCode


class Candidate(NamedTuple):
    """A code: its name, how many centroids are added up in a part of a vector, which is its cost, and what makes it;
    and centroids that a part of a vector is compared with, or as many as rounding to a grid takes the time of."""

    name: str
    chain: int
    make: Callable[[], Made]
    compared: int = 256

    def unfitted(self, **settings: object) -> Made:
        """An unfitted one with those of the settings that it has."""
        made = self.make()
        code = cast(BaseEstimator, without_norms(made))
        code.set_params(**{name: settings[name] for name in settings.keys() & code.get_params().keys()})
        return made

    def seconds(self, learned: int, encoded: int, d: int) -> float:
        """Predicted seconds on two cores to train on and to encode numbers of vectors of d columns."""
        learning = (self.chain + (self.name == PRODUCT)) * learned * _LEARNING  # a rotation takes as long again
        return (learning + self.chain * encoded * _ENCODING) * self.compared * (d + _OVERHEAD)


def without_norms(made: Made) -> Made:
    return made.quantizer if isinstance(made, WithNorms) else made


def candidates(
    n_bytes: int, d: int, n: int, *, metric: str = "l2", norms: bool = False, seed: Seed = None, **settings: object
) -> list[Candidate]:
    """The codes of at most `n_bytes` a vector of d columns that n vectors suffice to train, the cheapest first.

    With `norms`, for vectors of different norms, a byte may be the norm's. `settings` are those of sums of centroids.
    """
    K = 256 if n >= 256 else 16
    units, axes = 8 * n_bytes // code_bits(K), d <= 8 * n_bytes <= 8 * d  # axes: from a bit a column
    names = [PRODUCT, PLAIN] if units <= d else []
    names += [AXES] * axes
    names += [name for name, bits in reversed(SCALARS.items()) if -(-bits * d // 8) <= n_bytes][:1]
    names += [name for name, (splits, _) in sums(units).items() if splits <= d]
    if norms:
        shorter = sums(units - 8 // code_bits(K))
        names += [name + NORMS for name, (splits, _) in shorter.items() if splits <= d]
    made = (candidate(name, n_bytes, K, metric=metric, norms=norms, seed=seed, **settings) for name in names)
    return sorted(made, key=lambda one: one.chain)


def candidate(
    name: str,
    n_bytes: int,
    n_centroids: int = 256,
    *,
    metric: str = "l2",
    norms: bool = False,
    seed: Seed = None,
    **settings: Any,
) -> Candidate:
    """The code of that name, one of `NAMES`, with the byte of the norm in `n_bytes`; KeyError if it has no such size.
    A product or axis code may, with `norms`, spend a byte on them."""
    plain, K = name.removesuffix(NORMS), n_centroids
    if plain != name:
        shorter = candidate(plain, n_bytes - 1, K, metric=metric, seed=seed, **settings)
        return shorter._replace(name=name, make=lambda: WithNorms(cast(VectorCodes, shorter.make())))
    units = 8 * n_bytes // code_bits(K)
    if name == PRODUCT and norms and K == 256:
        return Candidate(name, 1, partial(ProductCode, n_bytes, metric=metric, random_state=seed))
    if name in (PRODUCT, PLAIN):
        rotation = "procrustes" if name == PRODUCT else None
        return Candidate(name, 1, partial(ProductQuantizer, units, K, rotation, random_state=seed), K)
    if name == AXES:
        made = partial(AxisCode, n_bytes, metric=metric) if norms else partial(AxisQuantizer, n_bytes)
        return Candidate(name, 1, made, 64)
    if name in SCALARS:
        return Candidate(name, 1, partial(ScalarQuantizer, SCALARS[name]), 16)
    settings = {"metric": "l2" if metric == "l2" else "ip", "random_state": seed, **settings}
    if name == RESIDUAL:
        return Candidate(name, units, partial(ResidualQuantizer, units, K, **settings), K)
    splits, chain = sums(units)[name]
    return Candidate(name, chain, partial(ProductResidualQuantizer, splits, chain, K, **settings), K)


def sums(units: int) -> dict[str, tuple[int, int]]:
    """Parts and codebooks of each part of the sums of centroids of at most `units` codebooks, by name."""
    found: dict[str, tuple[int, int]] = {}
    for name, target in SUMS.items():
        used = [chain for _, chain in found.values()]
        chain = _chain(units, target, used)
        if chain not in used and (splits := units // chain) > 1:
            found[name] = splits, chain
    return found | ({RESIDUAL: (1, units)} if 1 < units <= LONGEST else {})


def _chain(units: int, target: int, used: Container[int]) -> int:
    """How many codebooks, about `target`, sums have that leave the fewest of the units over: `target` or one more or
    less, or, where those leave any, others up to half more that were not used."""
    chain = min((target, max(2, target - 1), target + 1), key=lambda c: units % c)
    if not units % chain or units < 2 * chain:
        return chain
    others = (c for c in range(-(-5 * target // 8), 3 * target // 2 + 1) if c > 1 and c not in used)
    return min(others, key=lambda c: (units % c, abs(math.log(c / target))), default=chain)
