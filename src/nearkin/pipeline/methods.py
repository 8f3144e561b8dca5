"""The methods that turn vectors into codes, by the names that the command line and reports use."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import nearkin as nk
from nearkin._check import check_choice, check_integer
from nearkin._types import Seed
from nearkin._words import counted
from nearkin.hashing.registry import HASHERS
from nearkin.quantization.best import BestCode


@dataclass(frozen=True)
class Method:
    """How to make an unfitted quantizer of a given code size; `sizes(d)`: bytes that a code of d columns may have."""

    name: str
    summary: str
    make: Callable[["CodeSize", Seed], Any]  # (size, random_state) -> estimator
    metrics: tuple[str, ...]  # what its codes can be searched by, the usual one first
    sizes: Callable[[int], Sequence[int]] = lambda d: range(1, d + 1)

    def check(self, size: "CodeSize", d: int) -> None:
        """ValueError for a product code of more codes than there are columns, in the words of the command line."""
        if self.name not in _ROTATIONS or size.n_bytes is None:
            return
        codes = subspaces(size.n_bytes, size.n_centroids)
        if codes > d:
            raise ValueError(
                f"--bytes is {size.n_bytes}, which are {codes} codes, and the vectors have {counted(d, 'column')}, a "
                f"code for each at most; type --bytes {max(1, d * size.n_bytes // codes)}, or --method float16"
            )


@dataclass(frozen=True)
class CodeSize:
    """What the user asked a code to be; methods read what concerns them."""

    n_bytes: int | None = None
    n_bits: int | None = None
    n_centroids: int = 256
    n_coarse: int | None = None


def _product(rotation: str | None) -> Callable[[CodeSize, Seed], Any]:
    def make(size: CodeSize, random_state: Seed) -> Any:
        if size.n_bits is not None and size.n_bytes is None and size.n_bits % 8:
            raise ValueError(f"bits is {size.n_bits}; product quantization needs a multiple of 8, or give bytes")
        _check_one_size(size)
        n_bytes = size.n_bytes if size.n_bytes is not None else (size.n_bits or 128) // 8
        n_subspaces = subspaces(n_bytes, size.n_centroids)
        return nk.ProductQuantizer(
            n_subspaces, size.n_centroids, rotation=rotation, n_lists=size.n_coarse or 0, random_state=random_state
        )

    return make


def _residual(size: CodeSize, random_state: Seed) -> Any:
    return nk.quantization.ResidualQuantizer(
        _codebooks(size), size.n_centroids, n_lists=size.n_coarse or 0, random_state=random_state
    )


def _product_residual(size: CodeSize, random_state: Seed) -> Any:
    """Four codebooks a part, the most that divide the bytes: more keep more neighbours, and search is slower."""
    codebooks = _codebooks(size)
    each = _each(codebooks)
    if each is None:
        raise ValueError(
            f"bytes is {size.n_bytes}; a product residual code has parts of {', '.join(map(str, _EACH))} codebooks: "
            f"give {codebooks + 1} bytes, or take --method residual, which has any size"
        )
    return nk.quantization.ProductResidualQuantizer(
        codebooks // each, each, size.n_centroids, n_lists=size.n_coarse or 0, random_state=random_state
    )


def _each(codebooks: int) -> int | None:
    """Codebooks of a part; None where they cannot be dealt out to parts."""
    return next((count for count in _EACH if codebooks % count == 0), None)


def _codebooks(size: CodeSize) -> int:
    _check_one_size(size)
    n_bytes = size.n_bytes if size.n_bytes is not None else (size.n_bits or 128) // 8
    return subspaces(n_bytes, size.n_centroids)


def _best(size: CodeSize, random_state: Seed) -> BestCode:
    if size.n_coarse is not None:
        raise ValueError("coarse cells are for product quantization; leave coarse out with method best")
    _check_one_size(size)
    n_bytes = size.n_bytes if size.n_bytes is not None else (size.n_bits or 128) // 8
    return BestCode(check_integer(n_bytes, "bytes", low=1), random_state=random_state)


def _hash(public_name: str) -> Callable[[CodeSize, Seed], Any]:
    def make(size: CodeSize, random_state: Seed) -> Any:
        if size.n_coarse is not None:
            raise ValueError("coarse cells are for product quantization; leave coarse out with a hashing method")
        _check_one_size(size)
        n_bits = size.n_bits if size.n_bits is not None else 8 * (size.n_bytes or 16)
        return getattr(nk, public_name)(n_bits=n_bits, random_state=random_state)

    return make


def _scalar(n_bits: int) -> Callable[[CodeSize, Seed], Any]:
    def make(size: CodeSize, random_state: Seed) -> Any:
        if size.n_coarse is not None:
            raise ValueError("coarse cells are for product quantization; leave coarse out with a scalar code")
        if size.n_bytes is not None or size.n_bits is not None:
            raise ValueError(
                f"a scalar code takes {n_bits} bits a column, whatever bytes or bits say; leave them out, or take "
                "product quantization for a code of any size"
            )
        return nk.quantization.ScalarQuantizer(n_bits)

    return make


def _check_one_size(size: CodeSize) -> None:
    if size.n_bits is not None and size.n_bytes is not None and size.n_bits != 8 * size.n_bytes:
        raise ValueError(f"bits is {size.n_bits} and bytes is {size.n_bytes}; give one of them")


def subspaces(n_bytes: int, n_centroids: int) -> int:
    """How many subspaces fill `n_bytes` when each is coded by one of `n_centroids`; ValueError if none does exactly.

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


_BYTES, _BITS = ("l2", "ip", "cosine"), ("hamming",)
_ROTATIONS = {
    "none": (None, "product quantization as it is (PQ)"),
    "procrustes": ("procrustes", "rotation by SVD in every iteration (OPQ)"),
    "givens-random": ("givens-random", "rotation by Givens steps on random pairs of axes"),
    "givens-greedy": ("givens-greedy", "Givens steps on the pairs that gain most, greedily matched"),
    "givens-2opt": ("givens-2opt", "greedy matching improved by pair exchanges"),
    "givens-steepest": ("givens-steepest", "Givens steps on the best matching (slow, an upper bound)"),
    "cayley": ("cayley", "gradient steps on the Cayley parameters (for comparison)"),
}


_EACH = (4, 3, 2)  # codebooks of a part of a product residual code
_LONGEST = (
    16  # bytes of a residual code that are worth trying: beyond, product residual codes keep as much, in less time
)

SCALARS = {  # name -> bits a column, whatever size is asked for; and what it does
    "int4": (4, "every column rounded to 4 bits"),
    "int6": (6, "every column rounded to 6 bits"),
    "int8": (8, "every column rounded to 8 bits"),
    "float16": (16, "every column as a half-precision float"),
}


def methods() -> dict[str, Method]:
    """All methods of this installation, by name, product quantization first."""
    products = {name: Method(name, text, _product(rotation), _BYTES) for name, (rotation, text) in _ROTATIONS.items()}
    hashes = {
        entry.method: Method(entry.method, entry.summary, _hash(public), _BITS) for public, entry in HASHERS.items()
    }
    scalars = {
        name: Method(name, text, _scalar(bits), _BYTES, _bytes_of(bits)) for name, (bits, text) in SCALARS.items()
    }
    raced = {"best": Method("best", "races product, residual and scalar codes, and keeps the best", _best, _BYTES)}
    raced["residual"] = Method(
        "residual",
        "codes of what the codes before left over (slow search)",
        _residual,
        _BYTES,
        lambda d: range(1, _LONGEST + 1),
    )
    raced["product-residual"] = Method(
        "product-residual",
        "residual codes in each part of rotated rows (between product and residual codes)",
        _product_residual,
        _BYTES,
        lambda d: [n for n in range(_EACH[0], _EACH[0] * d + 1) if (each := _each(n)) and n // each <= d],
    )
    return products | scalars | raced | hashes


def _bytes_of(bits: int) -> Callable[[int], Sequence[int]]:
    return lambda d: [math.ceil(d * bits / 8)]


def find_method(name: str) -> Method:
    """A method by its name; ValueError that lists all for an unknown one."""
    found = methods()
    return found[check_choice(name, "method", found)]


def choose_metric(method: Method, metric: str | None) -> str:
    """The metric asked for, or the method's usual one; ValueError for one that its codes cannot be searched by."""
    if metric is None:
        return method.metrics[0]
    if metric not in method.metrics:
        raise ValueError(
            f"metric is {metric!r}; the codes of {method.name} are searched by {', '.join(method.metrics)}"
        )
    return metric
