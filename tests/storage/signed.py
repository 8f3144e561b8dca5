"""Small saved folders, and one that somebody changed on purpose: what stands behind the checksums must find it."""

import json
from pathlib import Path

from nearkin._storage import read_config, saving_folder
from nearkin._storage.manifest import write_manifest


def save(path: Path, text: str, *, overwrite: bool = True) -> None:
    """Save a folder that holds a text."""
    with saving_folder(path, "lance export", {"text": text}, overwrite) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "data").write_text(text)


def state(path: Path) -> str:
    """The text that a folder holds."""
    text = read_config(path, "lance export")["text"]
    assert (path / "deep" / "data").read_text() == text
    return text


def signed(folder: Path) -> Path:
    """Manifests written again, so that what the folder holds now has valid checksums."""
    for file in sorted(folder.rglob("manifest.json"), key=lambda path: -len(path.parts)):
        record = json.loads(file.read_text())
        write_manifest(file.parent, record["kind"])
    return folder
