"""A file of FAISS, followed before FAISS reads it.

FAISS makes room for an array before it reads it, and opens other files that a file names. Its own limits are no way
out: they are global, and other threads read files too. So a file may hold only what nearkin writes, and announce no
more than it has.
"""

import os
from typing import BinaryIO

import numpy as np

# What follows a mark, in FAISS's index_read.cpp, the same from 1.14.2 to 1.15.1: "33" bytes; a number "4<2" of 4 bytes
# that must be below 2; an array "*4", a count and as many times 4 bytes; "xsum", a count and as many times the
# layout of that name; the mark "=LTra"; "<2", one of the marks of these levels; or what `_follow` knows by name.
_HEAD = "29 4<2"  # d, ntotal, two numbers without meaning, is_trained; metric
_SUMS = "16 *8 1 *4 4<2 8"  # d, M; nbits; is_trained; codebooks; no norms, and limits of these
_SPLITS = f"{_SUMS} xsum"
_LISTS = f"{_HEAD} 16 <1 1<2 *8"  # nlist, nprobe; centroids; the map of rows
_LAYOUTS = {  # level, layout
    "IxF2": (0, f"{_HEAD} *4"),
    "IxFI": (0, f"{_HEAD} *4"),
    "IBxF": (1, "21 *1"),
    "IxPq": (1, f"{_HEAD} product *1 9"),
    "IxRq": (1, f"{_HEAD} {_SUMS} 16 *1"),
    "IxPR": (1, f"{_HEAD} {_SPLITS} 8 *1"),
    "IxSQ": (1, f"{_HEAD} 28 *4 *1"),
    "IwPQ": (1, f"{_LISTS} 9 product =ilar"),
    "IwRQ": (1, f"{_LISTS} 8 {_SUMS} 13 =ilar"),
    "IwPR": (1, f"{_LISTS} 8 {_SPLITS} 5 =ilar"),
    "IxPT": (2, f"{_HEAD} 4<2 =LTra <2"),
    "IxM2": (3, f"{_HEAD} <3 *8"),
    "IBM2": (3, "21 <2 *8"),
    "LTra": (4, "1 *4 *4 9"),
    "ilar": (4, "lists"),
    "sum": (4, f"{_SUMS} 8"),
}


def check_file(file: BinaryIO) -> None:
    """ValueError unless FAISS may read an index from the whole file."""
    _follow(file, "<4")
    need(not file.read(1), "more bytes follow the index")
    file.seek(0)


def need(good: bool, what: str) -> None:
    """ValueError that names what is wrong unless `good`."""
    if not good:
        raise ValueError(what)


def _follow(file: BinaryIO, layout: str) -> None:
    for step in layout.split():
        before, mark, after = step.partition(next((mark for mark in "<=x*" if mark in step), " "))
        if mark == "*":
            _array(file, int(after))
        elif mark == "x":
            for _ in range(_number(file)):
                _follow(file, _LAYOUTS[after][1])
        elif mark == "<" and before:
            need(_number(file, int(before)) < int(after), "it has norms, a metric, a map or transforms of another kind")
        elif mark:
            name = file.read(4).decode("latin-1")
            level, inner = _LAYOUTS.get(name, (4, ""))
            need(level < int(after) if mark == "<" else name == after, f"nearkin does not write {name!r} there")
            _follow(file, inner)
        elif step.isdigit():
            _skip(file, int(step))
        else:
            {"product": _product, "lists": _lists}[step](file)


def _skip(file: BinaryIO, size: int) -> None:
    need(size <= os.fstat(file.fileno()).st_size - file.tell(), "it announces more than it has")
    file.seek(size, os.SEEK_CUR)


def _number(file: BinaryIO, size: int = 8) -> int:
    data = file.read(size)
    need(len(data) == size, "it ends too early")
    return int.from_bytes(data, "little")


def _array(file: BinaryIO, width: int) -> int:
    """The entries of an array."""
    count = _number(file)
    _skip(file, count * width)
    return count


def _product(file: BinaryIO) -> None:
    d, M, bits = (_number(file) for _ in range(3))
    need(d >= M and bits <= 24, "its codes are of an unknown size")  # FAISS has tables of M and of d rows
    need(_array(file, 4) == d << bits, "it has another number of centroids")


def _lists(file: BinaryIO) -> None:
    n_lists, code_size, kind = _number(file), _number(file), file.read(4)
    count = _array(file, 8)  # of sizes, or of numbers of lists and their sizes
    known = count == n_lists if kind == b"full" else kind == b"sprs" and n_lists <= os.fstat(file.fileno()).st_size
    need(known, "it has another number of lists")
    file.seek(-8 * count, os.SEEK_CUR)
    sizes = np.frombuffer(file.read(8 * count), "<u8")[0 if kind == b"full" else 1 :: 1 if kind == b"full" else 2]
    _skip(file, sum(sizes.tolist()) * (code_size + 8))
