"""A saved folder that somebody changed on purpose: what stands behind the checksums must find it."""

import json
from pathlib import Path

from nearkin._storage.manifest import write_manifest


def signed(folder: Path) -> Path:
    """Manifests written again, so that what the folder holds now has valid checksums."""
    for file in sorted(folder.rglob("manifest.json"), key=lambda path: -len(path.parts)):
        record = json.loads(file.read_text())
        write_manifest(file.parent, record["kind"])
    return folder
