"""The methods that turn vectors into codes, by their names on the command line."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import nearkin as nk
from nearkin._check import check_choice, check_integer
from nearkin._distributed import current
from nearkin._types import Record, Seed
from nearkin.contracts import Fittable
from nearkin.hashing.registry import HASHERS
from nearkin.quantization.best import BestCode
from nearkin.quantization.sized import ProductCode

PRODUCT, BEST = "product", "best"
MINUTES = 1.0  # of the race without a method, beyond what product codes take: `best` of 16,384 rows takes 8 to 40 s
_RACED_FROM = 1_000  # least number of rows for a race
_BYTES, _BITS = ("l2", "ip", "cosine"), ("hamming",)
_DEFAULT_BITS = 128
_ROTATIONS = ("none", "procrustes", "givens-random", "givens-greedy", "givens-steepest", "cayley")
SCALARS = {"int4": 4, "int6": 6, "int8": 8, "float16": 16}  # bits of a column, at any size asked for
_CODEBOOKS = (4, 3, 2)  # per part of a product residual code; more give a higher recall and a slower search
_LONGEST = 16  # bytes of a residual code; longer product residual codes keep as much in less time


@dataclass(frozen=True)
class CodeSize:
    """The size of a code as the user gave it; each method reads what it needs."""

    n_bytes: int | None = None
    n_bits: int | None = None
    n_centroids: int = 256
    n_coarse: int | None = None

    def bytes(self) -> int:
        """The bytes given, or those of the bits."""
        if self.n_bits is not None and self.n_bytes is not None and self.n_bits != 8 * self.n_bytes:
            raise ValueError(f"bits is {self.n_bits} and bytes is {self.n_bytes}; give one of them")
        return self.n_bytes if self.n_bytes is not None else (self.n_bits or _DEFAULT_BITS) // 8


@dataclass(frozen=True)
class Method:
    """A way to code vectors; `sizes(d)`: bytes that a code of d columns can have."""

    name: str
    metrics: tuple[str, ...]  # of the search, the default first
    sizes: Callable[[int], Sequence[int]] = lambda d: range(1, d + 1)

    def make(self, size: CodeSize, random_state: Seed, seconds: float | None = None) -> Fittable:
        """The unfitted quantizer; `seconds` of a race, None without a limit. ValueError for what the method lacks."""
        product, bits = self.name == PRODUCT or self.name in _ROTATIONS, self.metrics == _BITS
        if size.n_coarse is not None and (self.name in (BEST, *SCALARS) or bits):
            raise ValueError(f"coarse cells are for product quantization; leave coarse out with method {self.name}")
        if self.name == BEST:
            n_bytes = check_integer(size.bytes(), "bytes", low=1)
            return BestCode(n_bytes, seconds, random_state)
        if seconds is not None:
            raise ValueError(f"minutes are for the race of method best; leave them out with method {self.name}")
        if self.name in SCALARS:
            n_bits = SCALARS[self.name]
            if size.n_bytes is not None or size.n_bits is not None:
                raise ValueError(
                    f"a scalar code takes {n_bits} bits a column, whatever bytes or bits say; leave them out, or take "
                    "product quantization for a code of any size"
                )
            return nk.quantization.ScalarQuantizer(n_bits)
        if bits:
            n_bytes = size.bytes()
            hasher = next(getattr(nk, public) for public, entry in HASHERS.items() if entry.method == self.name)
            return hasher(n_bits=8 * n_bytes if size.n_bits is None else size.n_bits, random_state=random_state)
        if product and size.n_bits is not None and size.n_bytes is None and size.n_bits % 8:
            raise ValueError(f"bits is {size.n_bits}; product quantization needs a multiple of 8, or give bytes")
        codes = subspaces(size.bytes(), size.n_centroids)
        others: Record = {"n_lists": size.n_coarse or 0, "random_state": random_state}
        if self.name == PRODUCT and size.n_centroids in (16, 256):
            return ProductCode(size.bytes(), size.n_centroids, **others)
        if product:
            rotation = {PRODUCT: "procrustes", "none": None}.get(self.name, self.name)
            return nk.ProductQuantizer(codes, size.n_centroids, rotation, **others)
        if self.name == "residual":
            return nk.quantization.ResidualQuantizer(codes, size.n_centroids, **others)
        each = _codebooks_per_part(codes)
        if each is None:
            raise ValueError(
                f"bytes is {size.n_bytes}; a product residual code has parts of {', '.join(map(str, _CODEBOOKS))} "
                f"codebooks: give {codes + 1} bytes, or take --method residual, which has any size"
            )
        return nk.quantization.ProductResidualQuantizer(codes // each, each, size.n_centroids, **others)


def _codebooks_per_part(codebooks: int) -> int | None:
    """The most codebooks per part that divide all of them; None if no number does."""
    return next((count for count in _CODEBOOKS if codebooks % count == 0), None)


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
    scalars = (Method(name, _BYTES, lambda d, bits=bits: [math.ceil(d * bits / 8)]) for name, bits in SCALARS.items())
    codes = (
        *(Method(name, _BYTES) for name in (PRODUCT, *_ROTATIONS, BEST)),
        *scalars,
        Method("residual", _BYTES, lambda d: range(1, _LONGEST + 1)),
        Method(
            "product-residual",
            _BYTES,
            lambda d: [n for n in range(4, 4 * d + 1) if (each := _codebooks_per_part(n)) and n // each <= d],
        ),
        *(Method(entry.method, _BITS) for entry in HASHERS.values()),
    )
    return {method.name: method for method in codes}


def find_method(name: str) -> Method:
    """A method by its name; ValueError that lists all for an unknown one."""
    found = methods()
    return found[check_choice(name, "method", found)]


def default_method(size: CodeSize, n_rows: int) -> str:
    """The race, unless the size is one of product codes, or the rows or processes are such that it cannot be held."""
    product = size.n_bits is not None or size.n_centroids != 256 or size.n_coarse is not None
    return PRODUCT if product or n_rows < _RACED_FROM or current().size > 1 else BEST


def choose_metric(method: Method, metric: str | None) -> str:
    """The metric given, or the method's default; ValueError for one that its codes cannot be searched by."""
    return check_choice(metric or method.metrics[0], f"metric for {method.name}", method.metrics)
