"""Numbers of things in words."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number and what it counts, as messages write it.

    >>> counted(1, "row"), counted(3197, "row"), counted(2, "index", "indices")
    ('1 row', '3,197 rows', '2 indices')
    """
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
