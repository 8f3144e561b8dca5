"""What a job over shards has finished: a file of checksums, rewritten whole after every shard."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from nearkin._storage import replacing
from nearkin._types import Fields, Record

MANIFEST = "manifest.json"
_VERSION = 1


@dataclass
class Manifest:
    """Finished shards by the path of their source, and the model that encoded them."""

    model: str
    shards: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path, model: str) -> "Manifest":
        """The manifest in `folder`, a new one where there is none; ValueError if it is damaged or another model's."""
        if not (folder / MANIFEST).is_file():
            return cls(model)
        found = cls.read(folder)
        if found.model != model:
            raise ValueError(f"{folder} holds codes of another model; give another --out, or --replace to start anew")
        return found

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """The manifest in `folder`, of whatever model; ValueError if it is damaged or another program's."""
        file = folder / MANIFEST
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            kind, version = record["kind"], int(record["format_version"])
            found = cls(str(record["model"]), {str(name): dict(entry) for name, entry in record["shards"].items()})
            found.files()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{file} is damaged or of another program ({error!r}); give another --out, or remove the folder"
            ) from error
        if kind != "codes":
            raise ValueError(f"{file} is of the kind {kind!r}, not nearkin's codes; give another --out")
        if version > _VERSION:
            raise ValueError(f"{file} has format version {version}, this nearkin reads up to {_VERSION}")
        return found

    def files(self) -> set[str]:
        """Names of the files of codes."""
        return {str(entry["file"]) for entry in self.shards.values()}

    def has(self, folder: Path, source: Path) -> bool:
        """Whether `source` is finished: it has not changed since, and its codes have the checksum that they had."""
        entry = self.shards.get(str(source.resolve()))
        if entry is None:
            return False
        stat, made = source.stat(), folder / entry["file"]
        unchanged = (stat.st_size, stat.st_mtime_ns) == (entry["source_bytes"], entry["source_mtime_ns"])
        whole = made.is_file() and made.stat().st_size == entry["bytes"]
        return unchanged and whole and file_sha256(made) == entry["sha256"]

    def add(self, source: Path, entry: Fields) -> None:
        self.shards[str(source.resolve())] = dict(entry)

    def save(self, folder: Path) -> None:
        """Write the file whole or not at all."""
        record = {"kind": "codes", "format_version": _VERSION, "model": self.model, "shards": self.shards}
        with replacing(folder / MANIFEST) as fresh:
            fresh.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, read a piece at a time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
