"""The file behind a survey: one JSON line an event, only ever appended to, on disk before anyone is told so."""

import json
import os
from pathlib import Path

from nearkin._storage.exchange import sync_folder
from nearkin._types import Fields, Record


class Journal:
    """Events in the order in which they happened. Not for several threads at once: the survey holds a lock."""

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.events = self._recovered()
        self._file = self.path.open("ab")

    def append(self, event: Fields, *, durable: bool = True) -> None:
        """Write an event; with `durable` it survives a power cut once this returns, else the death of this process."""
        self._file.write(json.dumps(event, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _recovered(self) -> list[Record]:
        """The events of an earlier run. A last line that was cut off was acknowledged to nobody: it is removed."""
        if not self.path.exists():
            self.path.touch()
            sync_folder(self.path.parent)
            return []
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        try:
            events = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            raise ValueError(f"{self.path} is damaged ({error}); move it away, or mend that line") from error
        if len(whole) < len(data):
            os.truncate(self.path, len(whole))
        return events
