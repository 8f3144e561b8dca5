"""The rule for files that commands write: none replaces an input or a file that nearkin did not write.

A file is known by what it holds: a report by its footer, a table of hits by its columns, turned vectors by the length
of their header. Folders have the same rule in `nearkin._storage.check_target`, by their manifest.
"""

import csv
import glob
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from nearkin.data.formats.parquet import import_pyarrow

HEADER = 256  # bytes before the numbers of an .npy file of ours; NumPy's own headers of two dimensions have 128
MARK = b"nearkin"  # in the metadata of a .parquet file of ours
PAGES = (b"<footer>nearkin ", b'<meta name="generator" content="nearkin')
ARRAYS = {"ids.npy", "scores.npy", "queries.npy"}
_SCORES = ("score", "cosine", "distance")


def check_output(out: str | os.PathLike, inputs: Iterable[str | os.PathLike] = (), *, ours: bool = False) -> Path:
    """Return `out` as a path; ValueError if writing there would replace an input or a file that is not nearkin's.

    An empty file may be replaced. `inputs` are names as commands take them: FILE, FILE:KEY, or a pattern. `ours`: the
    caller looks itself whether the file is nearkin's.
    """
    out = Path(out)
    if not out.is_file():
        return out
    for name in inputs:
        for file in _files(os.fspath(name)):
            if os.path.exists(file) and os.path.samefile(file, out):
                raise ValueError(f"{out} is an input of this command and would be replaced; give another --out")
    if not ours and out.stat().st_size and not written_by_nearkin(out):
        raise ValueError(
            f"{out} was not written by this kind of command and would be replaced; give another --out, or remove it"
        )
    return out


def _files(name: str) -> list[str]:
    """The files that an argument may name."""
    alone = name.rpartition(":")[0]
    return [name, *([alone] if alone else []), *(glob.glob(name, recursive=True) if glob.has_magic(name) else [])]


def written_by_nearkin(file: Path) -> bool:
    """Whether a file holds what a command writes under a name with this ending."""
    known = _KNOWN.get(file.suffix.lower())
    try:
        return known is not None and known(file)
    except (OSError, ValueError, csv.Error, zipfile.BadZipFile):
        return False


def _is_page(file: Path) -> bool:
    content = file.read_bytes()
    return any(mark in content for mark in PAGES)


def _is_table(file: Path) -> bool:
    with file.open(encoding="utf-8", newline="") as lines:
        columns = next(csv.reader(lines, delimiter="\t" if file.suffix.lower() == ".tsv" else ","), [])
    return len(columns) == 4 and columns[1] == "rank" and columns[3] in _SCORES


def _is_archive(file: Path) -> bool:
    with zipfile.ZipFile(file) as archive:
        return set(archive.namelist()) == ARRAYS


def _is_array(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(_START)) == _START


def _is_parquet(file: Path) -> bool:
    _, parquet = import_pyarrow()
    return MARK in (parquet.read_schema(file).metadata or {})


_START = b"\x93NUMPY\x01\x00" + (HEADER - 10).to_bytes(2, "little")
_KNOWN: dict[str, Callable[[Path], bool]] = {
    ".html": _is_page, ".htm": _is_page, ".csv": _is_table, ".tsv": _is_table, ".npz": _is_archive, ".npy": _is_array,
    ".parquet": _is_parquet,
}  # fmt: skip


def array_header(shape: tuple[int, int]) -> bytes:
    """The header of an .npy file of float32 numbers that is known as ours: longer than NumPy's, and as valid."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    return _START + text.encode().ljust(HEADER - len(_START) - 1) + b"\n"
