"""Ways to damage a file: bytes changed, moved, cut, announced sizes made huge, and what text files meet."""

import random

_NUMBERS = (0, 1, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
_TOKENS = (
    *(b'"', b"\r", b"\r\n", b"\0", b",", b";", b"\t", b"\n\n", b" "),
    *(b"nan", b"inf", b"1e400", b"-", b"", b"1_0", b"007"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"99999999999999999999", b"18446744073709551615", b"A" * 300),
)


def damaged(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """`data` after one to four random damages; `others` lend pieces."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(_DAMAGES)(data or b"\0", others, rng)
    return data


def _place(data: bytes, rng: random.Random) -> int:
    """Anywhere, but half of the time near the beginning or the end, where headers and footers stand."""
    near = rng.choice((0, 0, 1, 2))
    if near == 1:
        return rng.randrange(min(len(data), 128))
    if near == 2:
        return len(data) - 1 - rng.randrange(min(len(data), 300))
    return rng.randrange(len(data))


def _flip(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _byte(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + bytes([rng.choice((0, 255, 127, 128, rng.randrange(256)))]) + data[at + 1 :]


def _number(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    at, width = _place(data, rng), rng.choice((2, 4, 8))
    number = rng.choice(_NUMBERS) % 256**width
    return data[:at] + number.to_bytes(width, "little") + data[at + width :]


def _cut(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    return data[: _place(data, rng)]


def _remove(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + data[at + rng.choice((1, 2, 8, 50)) :]


def _insert(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + rng.randbytes(rng.choice((1, 2, 8))) + data[at:]


def _token(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    at = _place(data, rng)
    return data[:at] + rng.choice(_TOKENS) + data[at + rng.randrange(3) :]


def _repeat(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    at, to = _place(data, rng), _place(data, rng)
    return data[:at] + data[to : to + rng.choice((1, 4, 30))] + data[at:]


def _splice(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    other = rng.choice(others)
    return data[: _place(data, rng)] + other[_place(other, rng) :]


def _recode(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    return data.decode("latin-1").encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8")))


_DAMAGES = (_flip, _flip, _byte, _number, _cut, _remove, _insert, _token, _token, _repeat, _splice, _recode)
