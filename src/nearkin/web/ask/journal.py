"""The file of a survey: one JSON line an event, only ever appended to, and on disk before an answer is acknowledged."""

import json
import os
from contextlib import suppress
from pathlib import Path

from nearkin._storage.exchange import sync_folder
from nearkin._storage.locks import try_lock
from nearkin._types import Fields, Record


class Journal:
    """Events in the order in which they happened, held by one process. The survey's own lock keeps its threads apart.

    ValueError where another process has the file open, or where it is damaged.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab+", buffering=0)  # what cannot be written must not wait in a buffer
        try:
            if not try_lock(self._file.fileno()):
                raise ValueError(
                    f"{self.path} is in use by another `nearkin ask`; stop that one, or give another --out"
                )
            sync_folder(self.path.parent)
            self.events = self._recovered()
        except BaseException:
            self._file.close()
            raise

    def append(self, event: Fields, *, durable: bool = True) -> None:
        """Write an event; with `durable` it survives a power cut once this returns, else the death of this process.

        OSError where that fails, such as on a full disk; the file then ends with the event before.
        """
        line, number = json.dumps(event, ensure_ascii=False).encode() + b"\n", self._file.fileno()
        try:
            if os.fstat(number).st_size != self._end:  # an earlier failure could not be undone at once
                os.ftruncate(number, self._end)
            written = 0
            while written < len(line):
                written += self._file.write(line[written:])
            if durable:
                os.fsync(number)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(number, self._end)
            raise OSError(error.errno, error.strerror, str(self.path)) from error
        self._end += len(line)

    def close(self) -> None:
        """Close the file, which lets another process open it."""
        self._file.close()

    def _recovered(self) -> list[Record]:
        """The events of an earlier run. A last line that was cut off is dropped: it was acknowledged to nobody."""
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        try:
            events = [json.loads(line) for line in whole.splitlines()]
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.path} is damaged ({error}); move it away, or correct that line") from error
        self._end = len(whole)
        return events
