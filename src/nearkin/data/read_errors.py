"""How every reader fails: whatever a library raises on a damaged file becomes one ValueError that names it."""

from collections.abc import Iterator
from contextlib import contextmanager

from nearkin.data.locator import Locator


@contextmanager
def reading(where: Locator) -> Iterator[None]:
    """Turn any failure to decode `where` into a ValueError with its name and the reason.

    What says something else stays as it is: a missing file, a missing right to read it, a missing package, and
    messages that name the file already.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError, ImportError):
        raise
    except UnicodeDecodeError as error:
        raise ValueError(f"{where} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except ValueError as error:
        if str(where.path) in str(error):
            raise
        raise _damaged(where, str(error)) from error
    except MemoryError as error:
        raise _damaged(where, "it asks for more memory than there is") from error
    except Exception as error:  # zipfile, zlib, NumPy and pyarrow raise some twenty types for damaged files
        raise _damaged(where, f"{type(error).__name__}: {error}") from error


def _damaged(where: Locator, reason: str) -> ValueError:
    return ValueError(f"{where} cannot be read ({' '.join(reason.split())[:300]}); the file is damaged, write it again")
