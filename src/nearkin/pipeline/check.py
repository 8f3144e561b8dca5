"""The whole of `nearkin check`: is a saved folder what was saved?"""

import os
from pathlib import Path

from nearkin._storage import one_version, read_config, read_manifest
from nearkin._types import Record
from nearkin.contracts import Callback, ignore
from nearkin.index.saved import read_parts
from nearkin.pipeline.encode.manifest import MANIFEST, Manifest, file_sha256


def check_folder(folder: str | os.PathLike, callback: Callback = ignore) -> Record:
    """Compare every file of a folder that nearkin saved with its manifest.

    Returns {"folder", "kind", "format_version", "files", "bytes", "verified", "damaged", "others"}: `damaged` holds a
    line for each file that is missing or changed, `others` the files that nearkin did not put there. A folder of an
    earlier nearkin has no manifest: its record has verified False. FileNotFoundError or ValueError for what is no
    folder of nearkin's. `callback(files done, {"total": n})` follows.
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
    record = {"folder": str(folder), "kind": config.get("kind"), "format_version": config.get("format_version")}
    if manifest is None:
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
        return record | {
            "files": len(sizes), "bytes": sum(sizes), "verified": False, "damaged": damaged, "others": []
        }  # fmt: skip
    found = []
    for done, name in enumerate(manifest.files, 1):
        try:
            manifest.verify(name)
        except (ValueError, OSError) as error:
            found.append(str(error))
        callback(done, {"total": len(manifest.files)})
    if manifest.kind == "index" and not found:
        try:  # files may be whole and still of two indexes
            read_parts(folder)
        except ValueError as error:
            found.append(str(error))
    return record | {
        "kind": manifest.kind,
        "files": len(manifest.files),
        "bytes": sum(entry.bytes for entry in manifest.files.values()),
        "verified": True,
        "damaged": found or damaged,
        "others": [] if manifest.growing else manifest.strangers(),
    }


def _check_codes(folder: Path, callback: Callback) -> Record:
    """The same for what `nearkin encode` wrote."""
    shards = list(Manifest.read(folder).shards.values())
    damaged = []
    for done, entry in enumerate(shards, 1):
        path = folder / entry["file"]
        if not path.is_file():
            damaged.append(f"{path} is missing; run `nearkin encode` again")
        elif path.stat().st_size != entry["bytes"] or file_sha256(path) != entry["sha256"]:
            damaged.append(f"{path} has other bytes than {MANIFEST} says; run `nearkin encode` again")
        callback(done, {"total": len(shards)})
    return {
        "folder": str(folder),
        "kind": "codes",
        "format_version": 1,
        "files": len(shards),
        "bytes": sum(entry["bytes"] for entry in shards),
        "verified": True,
        "damaged": damaged,
        "others": [],
    }
