"""`nearkin check`: whether a saved folder holds what was saved."""

import os
from pathlib import Path

from nearkin._storage import one_version, read_config, read_manifest
from nearkin._types import Record
from nearkin.contracts import Callback, ignore
from nearkin.index.saved import read_parts
from nearkin.pipeline.encode import MANIFEST, EncodedShards, is_whole


def check_folder(folder: str | os.PathLike, callback: Callback = ignore) -> Record:
    """Compare every file of a folder that nearkin saved with its manifest.

    Returns {"folder", "kind", "format_version", "files", "bytes", "verified", "damaged", "others"}: `damaged` has a
    line for each file that is missing or changed, `others` are files that nearkin did not write. Folders of early
    versions have no manifest: "verified" is False. FileNotFoundError or ValueError for a folder that nearkin did not
    save. `callback(files done, {"total": n})` is called after each file.
    """
    folder = Path(folder)
    if (folder / MANIFEST).is_file() and not (folder / "config.json").is_file():
        return _check_codes(folder, callback)
    return one_version(folder, lambda path: _check(path, callback))


def _check(folder: Path, callback: Callback) -> Record:
    """The record of a folder with a config.json."""
    config, damaged = {}, []
    try:
        config = read_config(folder)
    except ValueError as error:
        if not (folder / MANIFEST).is_file():
            raise
        damaged.append(str(error))
    manifest = read_manifest(folder)
    if manifest is None:
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        version = config.get("format_version")
        return _record(folder, config.get("kind"), version, len(sizes), sum(sizes), damaged, verified=False)
    found = []
    for done, name in enumerate(manifest.files, 1):
        try:
            manifest.verify(name)
        except (ValueError, OSError) as error:
            found.append(str(error))
        callback(done, {"total": len(manifest.files)})
    if manifest.kind == "index" and not found:
        try:  # the files may be whole and of two different indexes
            read_parts(folder)
        except ValueError as error:
            found.append(str(error))
    size = sum(entry.bytes for entry in manifest.files.values())
    version = config.get("format_version")
    others = [] if manifest.growing else manifest.strangers()
    return _record(folder, manifest.kind, version, len(manifest.files), size, found or damaged, others)


def _check_codes(folder: Path, callback: Callback) -> Record:
    """The record of a folder of `nearkin encode`."""
    entries = list(EncodedShards.read(folder).entries.values())
    damaged = []
    for done, entry in enumerate(entries, 1):
        if not is_whole(folder, entry):
            path = folder / entry["file"]
            how = f"has other bytes than {MANIFEST} says" if path.is_file() else "is missing"
            damaged.append(f"{path} {how}; run `nearkin encode` again")
        callback(done, {"total": len(entries)})
    return _record(folder, "codes", 1, len(entries), sum(entry["bytes"] for entry in entries), damaged)


def _record(
    folder: Path,
    kind: str | None,
    version: int | None,
    files: int,
    size: int,
    damaged: list[str],
    others: list[str] | None = None,
    *,
    verified: bool = True,
) -> Record:
    return {
        "folder": str(folder), "kind": kind, "format_version": version, "files": files, "bytes": size,
        "verified": verified, "damaged": damaged, "others": others or [],
    }  # fmt: skip
