"""What lies beside the vectors: labels, texts and pictures, in the order of the rows or by their ids."""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from nearkin.data import read_column
from nearkin.data.files import locate, reading
from nearkin.data.formats.numpy_files import choose_key, read_npz
from nearkin.data.tables import read_table

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_SIZE = 160  # pixels of a picture's longer side, as a page shows it


class Pictures:
    """One picture a row, from an array (n, h, w[, 3]) or from files; handed out as PNGs, drawn anew.

    The smallest and largest number among an array's first thousand pictures are shown black and white.
    """

    def __init__(self, array: np.ndarray | None = None, files: Sequence[Path | None] = ()) -> None:
        self._array, self._files = array, files
        if array is not None:
            some = array[: min(len(array), 1000)]
            low, high = float(some.min()), float(some.max())
            self._low, self._scale = low, 255 / max(high - low, 1e-12)

    def has(self, row: int) -> bool:
        """Whether a row has a picture."""
        return self._array is not None or self._files[row] is not None

    def png(self, row: int) -> bytes:
        """The picture of a row; ValueError for a file that is none."""
        buffer = io.BytesIO()
        self._image(row).save(buffer, format="PNG")
        return buffer.getvalue()

    def _image(self, row: int) -> Image.Image:
        if self._array is not None:
            pixels = (self._array[row].astype(np.float64) - self._low) * self._scale
            return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
        file = self._files[row]
        try:
            with Image.open(str(file), formats=("PNG", "JPEG", "GIF", "WEBP", "BMP")) as image:
                image.thumbnail((_SIZE, _SIZE))
                return image.convert("RGB")
        except (OSError, SyntaxError, Image.DecompressionBombError) as error:
            raise ValueError(f"{file} is no picture that can be read ({error})") from error


def read_values(path: str, ids: Sequence[str], ids_column: str | None, what: str) -> np.ndarray:
    """One value a row as text, (n,): in the order of the rows, or found by the column of ids; "" where there is none.

    `path` names a column or an array as `read_column` reads it, or with `ids_column` a table of two columns or more, of
    which one is called `what`. ValueError for another number of values, or where no id is known.
    """
    if ids_column is None:
        values = read_column(path).astype(str)
        if len(values) != len(ids):
            raise ValueError(
                f"{path} has {len(values)} values and the index {len(ids)} rows; give one for each, or name its column "
                "of ids: --ids-column id"
            )
        return values
    table = read_table(path, header=True)
    others = [name for name in table.columns if name != ids_column]
    wanted = what if what in others else others[0] if len(others) == 1 else what
    names = map(str, table.column(ids_column, "ids_column").values.tolist())
    known = dict(zip(names, map(str, table.column(wanted, what).values.tolist()), strict=True))
    if not known.keys() & set(ids):
        raise ValueError(f"no id of {path} ({ids_column}) is in the index, whose ids are such as {ids[0]!r}")
    return np.array([known.get(name, "") for name in ids])


def read_pictures(path: str, ids: Sequence[str]) -> Pictures:
    """Pictures of a folder, whose files are called as the ids (cat.jpg for cat), or an array (.npy, .npz:key).

    ValueError where no file is called so, or the array is not (n, h, w), (n, h, w, 3) or (n, h, w, 4).
    """
    if os.path.isdir(path):
        files = {file.stem: file for file in Path(path).iterdir() if file.suffix.lower() in _ENDINGS}
        found = [files.get(name) for name in ids]
        if not any(found):
            some = ", ".join(sorted(files)[:3]) or "no pictures"
            raise ValueError(f"no picture in {path} is called like an id ({ids[0]}.png ...); it holds {some}")
        return Pictures(files=found)
    where = locate(path)
    with reading(where):
        array = read_npz(where, choose_key(where)) if where.suffix == ".npz" else np.load(where.path, mmap_mode="r")
    colours = array.ndim == 4 and array.shape[3] in (3, 4)
    if array.dtype.kind not in "uifb" or not (array.ndim == 3 or colours) or len(array) != len(ids):
        raise ValueError(
            f"{path} has {array.dtype} of shape {array.shape}; pictures must be ({len(ids)}, height, width) or "
            f"({len(ids)}, height, width, 3), one for each row"
        )
    return Pictures(array=array)
