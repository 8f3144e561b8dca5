"""What users know of the rows of an index, from their files: labels, texts, pictures, and what a sweep measured."""

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from nearkin._storage import regular_file
from nearkin._types import Record
from nearkin.data import read_column
from nearkin.data.files import locate, reading
from nearkin.data.formats.binary import choose_key, read_npz
from nearkin.data.tables import read_table
from nearkin.plots import new_axes, plot_against_bytes
from nearkin.plots.style import legend, series_style, to_png

_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_SIZE = 160  # pixels of a picture's longer side on a page


class Pictures:
    """One picture a row, from an array (n, h, w[, 3]) or from files; every one is encoded again, as PNG.

    The smallest and largest number among an array's first thousand pictures are shown black and white.
    """

    def __init__(self, array: np.ndarray | None = None, files: Sequence[Path | None] = ()) -> None:
        self._array, self._files = array, files
        if array is not None:
            some = array[:1000]
            self._low = float(some.min())
            self._scale = 255 / max(float(some.max()) - self._low, 1e-12)

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


@dataclass(frozen=True)
class Metadata:
    """Labels (n,), texts (n,) and pictures of n rows; each may be missing."""

    labels: np.ndarray | None = None
    texts: np.ndarray | None = None
    pictures: Pictures | None = None

    def about(self, row: int) -> Record:
        """What is known of a row, None where nothing is."""
        return {
            "label": None if self.labels is None else str(self.labels[row]),
            "text": None if self.texts is None else str(self.texts[row]),
            "picture": self.pictures is not None and self.pictures.has(row),
        }


def read_values(path: str, ids: Sequence[str], ids_column: str | None, role: str) -> np.ndarray:
    """One value a row as text, (n,): in the order of the rows, or found by the column of ids; "" where it is missing.

    `path` names a column or an array as `read_column` reads it, or with `ids_column` a table of two columns or more, of
    which one is called `role`. ValueError for another number of values, or if no id is known.
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
    wanted = others[0] if len(others) == 1 else role
    names = map(str, table.column(ids_column, "ids_column").values.tolist())
    known = dict(zip(names, map(str, table.column(wanted, role).values.tolist()), strict=True))
    if not known.keys() & set(ids):
        raise ValueError(f"no id of {path} ({ids_column}) is in the index, whose ids are such as {ids[0]!r}")
    return np.array([known.get(name, "") for name in ids])


def read_pictures(path: str, ids: Sequence[str]) -> Pictures:
    """Pictures of a folder, whose files are called as the ids (cat.jpg for cat), or an array (.npy, .npz:key).

    ValueError if no file is called so, or the array is not (n, h, w), (n, h, w, 3) or (n, h, w, 4).
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


@dataclass(frozen=True)
class Sweep:
    """The trials of a sweep: method, bytes, queries a second, recall by the codes alone, and rescored (or None)."""

    k: int
    target: float
    trials: list[Record]

    def record(self) -> Record:
        """The table."""
        return {"k": self.k, "trials": sorted(self.trials, key=lambda trial: (trial["bytes"], trial["method"]))}

    def picture(self, name: str, dark: bool = False) -> bytes | None:
        """ "bytes": recall against bytes; "speed": recall against queries a second, PNG; None for another name."""
        methods = {t["method"]: [one for one in self.trials if one["method"] == t["method"]] for t in self.trials}
        label, ax = f"recall {self.k}@{self.k}", new_axes(5.4, 3.4)
        if name == "bytes":
            curves = {method: {float(t["bytes"]): t["recall"] for t in some} for method, some in methods.items()}
            plot_against_bytes(curves, label, ax, reference=(f"{self.target:g} wanted", self.target))
            return to_png(ax, dark)
        if name != "speed":
            return None
        for method, style in series_style(methods).items():
            points = sorted((t["recall"], t["queries_per_second"]) for t in methods[method])
            ax.plot(*zip(*points, strict=True), label=method, **style)
        ax.set_xlabel(label)
        ax.set_ylabel("queries a second")
        ax.set_yscale("log")
        legend(ax)
        return to_png(ax, dark)


def read_sweep(path: str | os.PathLike) -> Sweep:
    """The record that `nearkin sweep --json` prints; ValueError for another file."""
    try:
        record = json.loads(regular_file(path).read_text(encoding="utf-8"))
        trials = [
            {
                "method": str(trial["method"]),
                "bytes": int(trial["bytes"]),
                "queries_per_second": float(trial["queries_per_second"]),
                "recall": float(trial["recall"]["1"]),
                "rescored": None if "4" not in trial["recall"] else float(trial["recall"]["4"]),
            }
            for trial in record["trials"]
        ]
        if not trials:
            raise ValueError("no trials")
        return Sweep(int(record["k"]), float(record["target"]), trials)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no record of `nearkin sweep ... --json > {path}` ({error!r})") from error
