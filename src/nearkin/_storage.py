"""Saved artefacts: a folder of `config.json` and data files, written whole or not at all, and never a pickle."""

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors.numpy import load_file, save

FORMAT_VERSION = 1


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`; when the block ends without error, rename it to `path`.

    Works for files and for folders, and an interruption at any point leaves the old `path` whole. The parent folder is
    made if it is missing.
    """
    path = Path(path).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    workspace = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        fresh = workspace / "fresh"
        yield fresh
        if path.is_dir() and not fresh.is_dir():
            raise IsADirectoryError(f"{path} is a folder; give the name of a file")
        if path.is_dir():  # a folder cannot be renamed over a full one: two renames, the old one kept until the end
            old = workspace / "old"
            path.rename(old)
            try:
                fresh.rename(path)
            except BaseException:
                old.rename(path)
                raise
        else:
            fresh.replace(path)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


def check_target(path: str | os.PathLike) -> None:
    """Raise ValueError if `path` cannot become a saved folder: long work can ask before it starts."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file; give the name of a folder")
    if path.is_dir() and any(path.iterdir()) and not (path / "config.json").is_file():
        raise ValueError(f"{path} is a folder with other content; give a new name or an empty folder")


@contextmanager
def saving_folder(path: str | os.PathLike, kind: str, config: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a new folder holding `config.json` for the caller to fill; it replaces `path` when the block ends.

    An existing folder is replaced only if it is one of ours (it has a config.json) or empty: ValueError otherwise.
    """
    check_target(path)
    with replacing(path) as folder:
        folder.mkdir()
        record = {"kind": kind, "format_version": FORMAT_VERSION, **config}
        (folder / "config.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        yield folder


def read_config(path: str | os.PathLike, kind: str | None = None) -> dict[str, Any]:
    """Read the `config.json` of a saved folder; ValueError if it is missing, broken, newer or of another kind."""
    path = Path(path)
    file = path / "config.json"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder written by save or by `nearkin ... --out`")
    if not file.is_file():
        raise ValueError(f"{path} has no config.json; give a folder written by save or by `nearkin ... --out`")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        version = int(config["format_version"])
        found = config["kind"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is not a nearkin config ({error}); the folder is damaged") from error
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version}, this nearkin reads up to {FORMAT_VERSION}: pip install -U nearkin"
        )
    if kind is not None and found != kind:
        raise ValueError(f"{path} holds the kind {found!r}; {kind!r} is needed")
    return config


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays to a .safetensors file."""
    # not `save_file`, which makes files that nobody but their owner can read
    path.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the named arrays of a .safetensors file; ValueError if it is damaged."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; the folder is damaged")
    try:
        return load_file(path)
    except Exception as error:  # safetensors has its own error type for every kind of damage
        raise ValueError(f"{path} cannot be read ({error}); the file is damaged") from error


def pack_ids(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Ids (n,) as named arrays for a .safetensors file, which knows no strings: text as UTF-8 bytes and their ends."""
    if ids.dtype.kind in "iuf":
        return {f"{name}_ids": ids}
    if ids.dtype.kind in "bM":
        return {f"{name}_ids": ids.astype(np.int64)}
    encoded = [str(value).encode() for value in ids]
    ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
    return {f"{name}_ids_text": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}_ids_ends": ends}


def unpack_ids(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The ids that `pack_ids` packed under `name`."""
    if f"{name}_ids" in arrays:
        return arrays[f"{name}_ids"]
    text, ends = arrays[f"{name}_ids_text"].tobytes(), arrays[f"{name}_ids_ends"]
    starts = np.concatenate([[0], ends[:-1]])
    return np.array([text[a:b].decode() for a, b in zip(starts, ends, strict=True)], dtype=str)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; ValueError if it is missing, or a FIFO, device or folder, which might hang."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing; the folder is damaged") from None
    if not regular:
        raise ValueError(f"{path} is not a regular file; the folder is damaged")
    return path.open("rb")
