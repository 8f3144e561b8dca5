"""Ways to damage a file: bytes changed, moved, cut, announced sizes made huge, and what text files meet."""

import random
from collections.abc import Callable

_NUMBERS = (0, 1, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
_TOKENS = (
    *(b'"', b"\r", b"\r\n", b"\0", b",", b";", b"\t", b"\n\n", b" "),
    *(b"nan", b"inf", b"1e400", b"-", b"", b"1_0", b"007"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"99999999999999999999", b"18446744073709551615", b"A" * 300),
)


Piece = tuple[bytes, int]  # what is written at a place, and in place of how many bytes


def damaged(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """`data` after one to four random damages; `others` lend pieces."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = _once(data or b"\0", others, rng)
    return data


def _once(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    at, way = _place(data, rng), rng.choice(("splice", "recode", *_PIECES, "flip", "token"))
    if way == "splice":
        other = rng.choice(others)
        return data[:at] + other[_place(other, rng) :]
    if way == "recode":
        return data.decode("latin-1").encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8")))
    piece, width = _PIECES[way](data, at, rng)
    return data[:at] + piece + data[at + width :]


def _place(data: bytes, rng: random.Random) -> int:
    """Anywhere, but half of the time near the beginning or the end, where headers and footers stand."""
    near = rng.choice((0, 0, 1, 2))
    if near == 1:
        return rng.randrange(min(len(data), 128))
    if near == 2:
        return len(data) - 1 - rng.randrange(min(len(data), 300))
    return rng.randrange(len(data))


def _number(rng: random.Random) -> Piece:
    width = rng.choice((2, 4, 8))
    return (rng.choice(_NUMBERS) % 256**width).to_bytes(width, "little"), width


def _repeat(data: bytes, rng: random.Random) -> Piece:
    to = _place(data, rng)
    return data[to : to + rng.choice((1, 4, 30))], 0


_PIECES: dict[str, Callable[[bytes, int, random.Random], Piece]] = {
    "flip": lambda data, at, rng: (bytes([data[at] ^ (1 << rng.randrange(8))]), 1),
    "byte": lambda data, at, rng: (bytes([rng.choice((0, 255, 127, 128, rng.randrange(256)))]), 1),
    "number": lambda data, at, rng: _number(rng),
    "cut": lambda data, at, rng: (b"", len(data)),
    "remove": lambda data, at, rng: (b"", rng.choice((1, 2, 8, 50))),
    "insert": lambda data, at, rng: (rng.randbytes(rng.choice((1, 2, 8))), 0),
    "token": lambda data, at, rng: (rng.choice(_TOKENS), rng.randrange(3)),
    "repeat": lambda data, at, rng: _repeat(data, rng),
}
