"""The methods that turn vectors into codes, by their names on the command line."""

import itertools
import math
from dataclasses import dataclass
from typing import cast

import nearkin as nk
from nearkin._check import check_choice, check_integer
from nearkin._distributed import current
from nearkin._types import Record, Seed
from nearkin.contracts import Fittable
from nearkin.hashing.registry import HASHERS
from nearkin.quantization.best import BestCode
from nearkin.quantization.candidates import (
    AXES,
    NAMES,
    NORMS,
    PLAIN,
    PRODUCT,
    RESIDUAL,
    SCALARS,
    SUMS,
    candidate,
    candidates,
    sums,
)
from nearkin.quantization.sized import ProductCode

BEST = "best"
ALIASES = {"pq": PLAIN, "opq": "procrustes", "rq": RESIDUAL, "lsq": RESIDUAL, "sq8": "int8"}  # the field's names
MINUTES = 1.0  # of `best` without a method, beyond what product codes take
_COMPARED_FROM = 1_000  # least number of rows to compare codes
_BYTES, _BITS = ("l2", "ip", "cosine"), ("hamming",)
_DEFAULT_BYTES = 16
_ROTATIONS = ("procrustes", "givens-random", "givens-greedy", "givens-steepest", "cayley")
_MOST_BYTES = 512  # of codes that `sweep` tries
_WITH_LISTS = (PRODUCT, PLAIN, *_ROTATIONS, *SUMS, RESIDUAL)


@dataclass(frozen=True)
class CodeSize:
    """The size of a code as the user gave it; each method reads what it needs."""

    n_bytes: int | None = None
    n_bits: int | None = None  # of hashing methods, in place of bytes
    n_centroids: int = 256
    n_lists: int | None = None

    def bytes(self) -> int:
        """The bytes given, or those of codes without a size."""
        return _DEFAULT_BYTES if self.n_bytes is None else self.n_bytes


@dataclass(frozen=True)
class Method:
    """A way to code vectors."""

    name: str
    metrics: tuple[str, ...]  # of the search, the default first

    def make(self, size: CodeSize, random_state: Seed, seconds: float | None = None, metric: str = "l2") -> Fittable:
        """The unfitted quantizer; `seconds` to compare codes, None without a limit."""
        if size.n_lists is not None and self.name not in _WITH_LISTS:
            raise ValueError(
                f"inverted lists are for product and residual codes; leave lists out with method {self.name}"
            )
        if self.name == BEST:
            n_bytes = check_integer(size.bytes(), "bytes", low=1)
            return BestCode(n_bytes, seconds, random_state, metric=metric)
        if seconds is not None:
            raise ValueError(f"minutes are for method best, which compares codes; leave them out with {self.name}")
        if self.name in SCALARS:
            n_bits = SCALARS[self.name]
            if size.n_bytes is not None:
                raise ValueError(
                    f"a scalar code takes {n_bits} bits a column, whatever bytes say; leave them out, or take "
                    "product quantization for a code of any size"
                )
            return nk.quantization.ScalarQuantizer(n_bits)
        if self.metrics == _BITS:
            hasher = next(getattr(nk, public) for public, entry in HASHERS.items() if entry.method == self.name)
            return hasher(n_bits=size.n_bits or 8 * size.bytes(), random_state=random_state)
        if self.name in (PRODUCT, PLAIN, *_ROTATIONS):
            return self._product(size, random_state, metric)
        return self._compared(size, random_state, metric)

    def _product(self, size: CodeSize, random_state: Seed, metric: str) -> Fittable:
        codes = subspaces(size.bytes(), size.n_centroids)
        others: Record = {"n_lists": size.n_lists or 0, "random_state": random_state}
        if self.name == PRODUCT and size.n_centroids in (16, 256):
            return ProductCode(size.bytes(), size.n_centroids, metric=metric, **others)
        rotation = {PRODUCT: "procrustes", PLAIN: None}.get(self.name, self.name)
        return nk.ProductQuantizer(codes, size.n_centroids, rotation, **others)

    def _compared(self, size: CodeSize, random_state: Seed, metric: str) -> Fittable:
        """One of the `candidates` of `best`. ValueError for a size that it lacks."""
        n_bytes, K, plain = size.bytes(), size.n_centroids, self.name.removesuffix(NORMS)
        norm = 1 if plain != self.name else 0  # its byte
        if norm and K not in (16, 256):
            raise ValueError(f"centroids is {K}; method {self.name} needs 16 or 256, or take --method {plain}")
        codes = subspaces(check_integer(n_bytes, "bytes", low=1 + norm) - norm, K)
        if plain in SUMS and not _filled(plain, codes):
            more = (n for n in itertools.count(n_bytes + 1) if _filled(plain, codes * (n - norm) // (n_bytes - norm)))
            raise ValueError(
                f"bytes is {n_bytes}; codes of method {self.name} have parts of equally many codebooks: give "
                f"{next(more)} bytes, or take --method residual, which has any size"
            )
        lists: Record = {"n_lists": size.n_lists or 0} if plain in (*SUMS, RESIDUAL) else {}
        made = candidate(self.name, n_bytes, K, metric=metric, norms=plain == AXES, seed=random_state, **lists)
        return cast(Fittable, made.make())


def _filled(name: str, codes: int) -> bool:
    """Whether codes of that many codebooks leave none over."""
    splits, chain = sums(codes).get(name, (0, 0))
    return splits * chain == codes


def sizes_tried(d: int, *, norms: bool) -> dict[str, list[int]]:
    """Bytes at which each of the `candidates` of `best` exists for vectors of d columns, up to 512; `norms`: with those
    that spend a byte on the norm of a vector."""
    found = {name: [math.ceil(bits * d / 8)] for name, bits in SCALARS.items()}
    for n_bytes in range(1, _MOST_BYTES + 1):
        for name, *_ in candidates(n_bytes, d, 256, norms=norms):
            plain = name.removesuffix(NORMS)
            if name not in SCALARS and (plain not in SUMS or _filled(plain, n_bytes - (plain != name))):
                found.setdefault(name, []).append(n_bytes)
    return found


def subspaces(n_bytes: int, n_centroids: int) -> int:
    """Number of codes, each one of `n_centroids`, that fill `n_bytes`; ValueError if no whole number does.

    >>> subspaces(8, 256), subspaces(8, 16)
    (8, 16)
    """
    n_bytes = check_integer(n_bytes, "bytes", low=1)
    bits = math.ceil(math.log2(check_integer(n_centroids, "centroids", low=2, high=65536)))
    if 8 * n_bytes % bits:
        raise ValueError(
            f"{n_bytes} bytes are no whole number of {bits}-bit codes ({n_centroids} centroids); "
            f"give a multiple of {bits // math.gcd(bits, 8)} bytes, or 16 or 256 centroids"
        )
    return 8 * n_bytes // bits


def methods() -> dict[str, Method]:
    """All methods by name, product quantization first."""
    names = (PRODUCT, PLAIN, *_ROTATIONS, BEST, *(name for name in NAMES if name not in (PRODUCT, PLAIN)))
    without = {name: _BYTES[:2] if name.endswith(NORMS) else _BYTES for name in names}  # rows of one norm need none
    codes = (*(Method(*one) for one in without.items()), *(Method(entry.method, _BITS) for entry in HASHERS.values()))
    return {method.name: method for method in codes}


def find_method(name: str) -> Method:
    """A method by its name or one of `ALIASES`; ValueError that lists all for an unknown one."""
    found = methods()
    return found[ALIASES.get(name) or check_choice(name, "method", (*ALIASES, *found))]


def default_method(size: CodeSize, n_rows: int) -> str:
    """`best`, unless the size is one of product codes, vectors are too few, or several processes work."""
    product = size.n_centroids != 256 or size.n_lists is not None
    return PRODUCT if product or n_rows < _COMPARED_FROM or current().size > 1 else BEST


def choose_metric(method: Method, metric: str | None) -> str:
    """The metric given, or the method's default; ValueError for one that its codes cannot be searched by."""
    return check_choice(metric or method.metrics[0], f"metric for {method.name}", method.metrics)
