"""The journal of a survey: one JSON line an event, only ever appended to, and whole after a power cut."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nearkin._fields import Fields, Record
from nearkin._json import parsed_json
from nearkin._storage import sync, try_lock


def journal_path(out: Path) -> Path:
    """The journal of a table of answers."""
    return out.with_name(out.name + ".journal")


class Journal:
    """A file of one JSON line an event, only ever appended to, and open in one process; ValueError where another one
    has it open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab+", buffering=0)  # what cannot be written must not wait in a buffer
        try:
            if try_lock(self._file.fileno()) is False:
                raise ValueError(f"{path} is in use by another `nearkin ask`; stop it, or give another name")
            sync(path.parent)
            self._file.seek(0)
            data = self._file.read()
            self._end = data.rfind(b"\n") + 1  # an incomplete last line was never acknowledged
            self._lines = data[: self._end].splitlines()  # of earlier runs
        except BaseException:
            self._file.close()
            raise

    def replay(self, head: Fields, follow: Callable[[Record], None]) -> None:
        """Call `follow` with every event of earlier runs; the first line is `head`. ValueError that names the line of
        one that cannot follow."""
        for number, line in enumerate(self._lines, start=1):
            try:
                event = parsed_json(line)
                if number > 1:
                    follow(event)
                elif event != head:
                    raise ValueError("it belongs to other items or another form of question")
            except (KeyError, TypeError, ValueError) as error:
                why = f"{error} is missing or unknown" if isinstance(error, KeyError) else error
                said = f"{self.path} is damaged at line {number} ({why}); give another name, or correct that line"
                raise ValueError(said) from error
        if not self._lines:
            self.append(head)
        self._lines.clear()

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
        self._file.close()
