"""Types of records of named values, and values in words; loads nothing heavy, for the command line."""

import os
import shlex
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]
"""Named values of any kind: a callback's record, the content of a file of JSON, a function's options."""

Fields: TypeAlias = Mapping[str, Any]
"""A record that is only read."""

Extra: TypeAlias = Any
"""An object of a package that is an extra: its types are not there to be named."""

StrPath: TypeAlias = str | os.PathLike[str]
"""The name of a file or folder."""

FileOrFrame: TypeAlias = StrPath | Extra
"""A file, or a DataFrame of any library."""


MISSING = (  # cells of text that hold no value: pandas' list, and that of databases' dumps
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null", "\\N"),
)


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number and what it counts, as messages write it.

    >>> counted(1, "row"), counted(3197, "row"), counted(2, "index", "indices")
    ('1 row', '3,197 rows', '2 indices')
    """
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def show(value: object, form: str = ".4g") -> str:
    """A value as people read it in a terminal and on a page.

    >>> show(12345), show(0.12345), show(123456.7), show(True), show(None)
    ('12,345', '0.1235', '123,457', 'yes', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return f"{float(value):,.0f}" if abs(float(value)) >= 10_000 else f"{float(value):{form}}"
    return str(value)


def is_text(cell: object) -> bool:
    """Whether a cell of a table is aligned as text: it has other characters than numbers have."""
    return isinstance(cell, str) and not set(cell) <= set("0123456789.,+-–×%")


def shortened(message: str, most: int = 500) -> str:
    """A message without its middle if it has more than `most` characters: it may quote foreign text of any length.

    >>> shortened("column " + "x" * 600 + " holds no numbers", 60)
    'column xxxxxxxxxxxxxxxxxxxxxxxx ... xx holds no numbers'
    """
    half = most // 2 - 5
    return message if len(message) <= most else f"{message[: half + most // 10]} ... {message[-half + most // 10 :]}"


def quoted(word: object) -> str:
    """A word to type in a shell, also one with line breaks or bytes that are no text.

    >>> print(quoted("my $(id)"), quoted("two\\nlines"), quoted("plain"))
    'my $(id)' $'two\\x0alines' plain
    """
    text = str(word)
    if text.isprintable():
        return shlex.quote(text)
    escaped = (
        c if c.isprintable() and c not in "'\\" else "".join(f"\\x{byte:02x}" for byte in os.fsencode(c)) for c in text
    )
    return f"$'{''.join(escaped)}'"


def command(name: str, *files: object, **options: object) -> str:
    """A command of nearkin to type in a shell: its files, and options, of which None is left out and True has no value.

    >>> print(command("search", "my idx", "-q.npy", k=10, out="hits.csv", qrels=None, quiet=True))
    nearkin search 'my idx' ./-q.npy -k 10 --out hits.csv --quiet
    """
    words = ["nearkin", name, *map(_no_option, files)]
    for option, value in options.items():
        if value is not None:
            words.append(f"{'-' if len(option) == 1 else '--'}{option.replace('_', '-')}")
            words += [] if value is True else [_no_option(value)]
    return " ".join(map(quoted, words))


def _no_option(word: object) -> str:
    """The word, as a path if it begins as options do."""
    return f"./{word}" if str(word).startswith("-") else str(word)
