"""What the process keeps of memory that is no longer used."""

import ctypes

LARGE = 1 << 21  # bytes of an array that gets pages of its own, which go back to the system when it is freed
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h


def give_back_large_arrays() -> bool:
    """Have arrays of 2 MiB and more freed at once, for the rest of the process; False where the C library cannot.

    glibc gives such arrays pages of their own too, but only until it has seen one freed: from then on it takes all of
    up to that size, 32 MiB at most, from one heap, whose holes it keeps. Learning towers and an index, whose tables are
    that large and come and go, held a third more memory so than it used.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE))
    except (AttributeError, OSError, TypeError):
        return False
