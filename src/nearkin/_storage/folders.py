"""The folders that nearkin saves: `config.json` with kind and format version, and data files beside it."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearkin._storage.replacing import recover, replacing

FORMAT_VERSION = 1
KINDS = {  # what a folder of ours can hold; another kind is replaced by its own kind only
    *("index", "product quantizer", "hasher", "ordinal-embedding", "two-tower", "two-tower-checkpoint"),
    *("compress checkpoint", "faiss shards", "lance export"),
}


def check_target(path: str | os.PathLike, kind: str | None = None) -> None:
    """Raise ValueError if `path` cannot become a saved folder: long work can ask before it starts.

    An existing folder must be empty or one of ours: its config.json names a kind of nearkin's (or `kind`) and a format
    version that this nearkin knows.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file; give the name of a folder")
    if not path.is_dir() or not any(path.iterdir()):
        return
    try:
        found = read_config(path)["kind"]
    except ValueError as error:
        raise ValueError(
            f"{path} is a folder with other content, which is not replaced; give a new name or an empty folder"
        ) from error
    if found not in KINDS and found != kind:
        raise ValueError(f"{path} holds the kind {found!r}, which is not nearkin's; give a new name or an empty folder")


def check_apart(one: str | os.PathLike, other: str | os.PathLike) -> None:
    """Raise ValueError if two folders are the same, or one lies in the other: what writes one may remove the other."""
    first, second = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    if first == second:
        raise ValueError(f"{one} and {other} are the same place; give each a folder of its own")
    for inner, outer, names in ((first, second, (one, other)), (second, first, (other, one))):
        if outer in inner.parents:
            raise ValueError(f"{names[0]} lies in {names[1]}; give folders that lie beside each other")


def check_inputs(out: str | os.PathLike, inputs: Iterable[str | os.PathLike]) -> None:
    """Raise ValueError if an input lies in the folder `out`, which will be replaced."""
    folder = Path(os.path.realpath(out))
    for name in inputs:
        if folder in Path(os.path.realpath(name)).parents:
            raise ValueError(f"{name} lies in {out}, which would be replaced; give another folder to write to")


@contextmanager
def saving_folder(path: str | os.PathLike, kind: str, config: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a new folder holding `config.json` for the caller to fill; it replaces `path` when the block ends.

    An existing folder is replaced only if it is one of ours or empty: ValueError otherwise (see `check_target`).
    """
    with replacing_folder(path, kind) as folder:
        folder.mkdir()
        record = {"kind": kind, "format_version": FORMAT_VERSION, **config}
        (folder / "config.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        yield folder


@contextmanager
def replacing_folder(path: str | os.PathLike, kind: str | None = None) -> Iterator[Path]:
    """Yield the name of a folder to be made; it replaces `path`, a folder of ours, when the block ends."""
    check_target(path, kind)
    with replacing(path) as fresh:
        yield fresh
        check_target(path, kind)  # again: the work between may have taken hours


def read_config(path: str | os.PathLike, kind: str | None = None) -> dict[str, Any]:
    """Read the `config.json` of a saved folder; ValueError if it is missing, broken, newer or of another kind."""
    path = Path(path)
    file = path / "config.json"
    if not path.exists():
        recover(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder written by save or by `nearkin ... --out`")
    if not file.is_file():
        raise ValueError(f"{path} has no config.json; give a folder written by save or by `nearkin ... --out`")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        version = int(config["format_version"])
        found = config["kind"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{file} is not a nearkin config ({error}); the folder is damaged") from error
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version}, this nearkin reads up to {FORMAT_VERSION}: pip install -U nearkin"
        )
    if kind is not None and found != kind:
        raise ValueError(f"{path} holds the kind {found!r}; {kind!r} is needed")
    return config
