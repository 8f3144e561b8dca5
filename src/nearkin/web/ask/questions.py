"""Items and questions: three forms of question, and the comparisons that an answer implies."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearkin import OrdinalEmbedding
from nearkin._fields import counted
from nearkin.data import read_column, read_table
from nearkin.jobs import inputs
from nearkin.web.serving import is_inside

Shown = tuple[int, ...]  # numbers of items, in the order on the page
_MEDIA = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp"), "image"),
    **dict.fromkeys((".mp3", ".wav", ".ogg", ".m4a"), "sound"),
}


@dataclass(frozen=True)
class Items:
    """n things with different names; each is shown by its file (a picture or a sound), its text, or both.

    `files` and `links` hold None where an item has none. Files are served by the item's number, never by a path.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    files: Sequence[Path | None]
    links: Sequence[str | None]

    def __post_init__(self) -> None:
        if len(self.ids) < 3:
            raise ValueError(f"there are {counted(len(self.ids), 'item')}; at least 3 are needed to compare")
        read_table(pa.table({"items": pa.array(self.ids)})).columns["items"].ids()  # as a table of answers is read
        if len({name.lstrip("-").isdigit() for name in self.ids}) > 1:
            raise ValueError("items are named by numbers and by words; name all alike, so that answers can be read")
        name, count = Counter(self.ids).most_common(1)[0]
        if count > 1:
            raise ValueError(f"items repeat the name {name!r}; give each its own name")

    def __len__(self) -> int:
        return len(self.ids)

    def shown(self, number: int) -> dict[str, object]:
        """The record with which the page shows an item."""
        file, link = self.files[number], self.links[number]
        kind = None if file is None else _MEDIA[file.suffix.lower()]
        return {"number": number, "text": self.texts[number], "media": kind, "link": link}


def read_items(path: str | os.PathLike[str]) -> Items:
    """Items of a folder of pictures or sounds, of a table (.csv, .tsv, .parquet), or of a saved ordinal embedding.

    Links that lead out of the folder are none of its pictures. A .txt has a name a line. A table has a column of ids
    under a usual name or of texts called text, and may have image or sound (files in the table's folder) and link.
    FileNotFoundError, or ValueError for fewer than three items, names that repeat, or files that are missing or outside
    the table's folder.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder of pictures, a table, or an embedding's folder")
    if not path.is_dir():
        return _of_table(path)
    if (path / "config.json").is_file():
        return named_items(OrdinalEmbedding.load(path).objects_.tolist())
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in _MEDIA and is_inside(file, path))
    if not found:
        raise ValueError(f"{path} holds no picture or sound ({', '.join(_MEDIA)})")
    stems = [file.stem for file in found]
    names = stems if len(set(stems)) == len(stems) else [file.name for file in found]
    return Items(names, [""] * len(found), found, [None] * len(found))


def named_items(names: Sequence[object]) -> Items:
    texts = [str(name) for name in names]
    return Items(texts, texts, [None] * len(texts), [None] * len(texts))


def read_catch(path: str | os.PathLike[str], items: Items) -> tuple[tuple[int, int, int], ...]:
    """Questions with a known answer, columns anchor, near, far: names of items. ValueError for an unknown name."""
    table, names = read_table(path), np.array(items.ids)
    roles = "anchor", "near", "far"
    columns = (inputs.find_ids(np.array(table.column(role, role).text()), names, role).tolist() for role in roles)
    return tuple(zip(*columns, strict=True))


def _of_table(path: Path) -> Items:
    if path.suffix.lower() == ".txt":
        return named_items(read_column(path).tolist())
    table = read_table(path)
    ids, columns = table.role("id"), {name: column.text() for name, column in table.columns.items()}
    texts = columns.get("text")
    names = texts if ids is None else ids.text()
    if names is None:
        raise ValueError(
            f"{path} has the columns {', '.join(columns)}; call the names' column id, and others text, image, sound or "
            "link, or give a .txt with a name a line"
        )
    empty = [""] * len(names)
    media = columns.get("image") or columns.get("sound") or empty
    files = [_inside(path.parent, name) if name else None for name in media]
    shown = texts or (names if media is empty else empty)
    return Items(names, shown, files, [_checked_link(link) for link in columns.get("link", empty)])


def _inside(folder: Path, name: str) -> Path:
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ValueError(f"{name} lies outside {folder}; put files into the table's folder")
    if file.suffix.lower() not in _MEDIA or not file.is_file():
        raise ValueError(f"{file} is no picture or sound that is there ({', '.join(_MEDIA)})")
    return file


def _checked_link(text: str) -> str | None:
    if text and not text.startswith(("https://", "http://")):
        raise ValueError(f"the link {text!r} must begin with https:// or http://")
    return text or None


@dataclass(frozen=True)
class Form:
    """A kind of question.

    columns: of an answer's line in the table. lines: for each choice, the places of the
    shown items in that line. comparisons: places (i, j, l, k) in the line, d(i, j) < d(l, k). chosen: places in the
    line of what was chosen. orders: orders of the shown items in which the question is the same.
    """

    name: str
    columns: tuple[str, ...]
    lines: tuple[Shown, ...]
    comparisons: tuple[Shown, ...]
    chosen: Shown
    orders: tuple[Shown, ...]

    def line(self, shown: Shown, choice: int) -> Shown:
        return _at(shown, self.lines[choice])

    def implied(self, shown: Shown, choice: int) -> list[Shown]:
        """Comparisons (i, j, l, k), d(i, j) < d(l, k), that an answer implies."""
        return [_at(self.line(shown, choice), places) for places in self.comparisons]

    def key(self, shown: Shown) -> Shown:
        """Equal for the same question, whichever side its items are on."""
        return min(_at(shown, order) for order in self.orders)

    def answer(self, question: "Question") -> Shown:
        """The choice, independent of sides: the nearer item, the odd one, or the two that are more alike."""
        return tuple(sorted(_at(self.line(question.shown, question.choice or 0), self.chosen)))

    def random(self, n: int, rng: np.random.Generator) -> Shown:
        if len(self.columns) > n:  # two pairs of three items share one
            i, j, k = rng.permutation(n).tolist()
            return i, j, i, k
        return tuple(rng.choice(n, len(self.columns), replace=False).tolist())

    def shuffled(self, shown: Shown, rng: np.random.Generator) -> Shown:
        return _at(shown, self.orders[rng.integers(len(self.orders))])

    def all_comparisons(self, questions: Iterable["Question"]) -> np.ndarray:
        """The comparisons that answers to questions imply, (m, 4) uint32."""
        rows = [row for question in questions for row in self.implied(question.shown, question.choice or 0)]
        return np.asarray(rows, np.uint32).reshape(-1, 4)


def _at(items: Shown, places: Shown) -> Shown:
    return tuple(items[place] for place in places)


_PAIRS = tuple(order for order in permutations(range(4)) if {*order[:2]} in ({0, 1}, {2, 3}))
FORMS = {
    form.name: form
    for form in (
        Form(
            "triplet", ("anchor", "near", "far"),
            ((0, 1, 2), (0, 2, 1)), ((0, 1, 0, 2),), (1,), ((0, 1, 2), (0, 2, 1)),
        ),
        Form(
            "odd-one-out", ("one", "other", "odd"),
            ((1, 2, 0), (0, 2, 1), (0, 1, 2)), ((0, 1, 0, 2), (1, 0, 1, 2)), (2,), tuple(permutations(range(3))),
        ),
        Form(
            "pairs", ("near_1", "near_2", "far_1", "far_2"),
            ((0, 1, 2, 3), (2, 3, 0, 1)), ((0, 1, 2, 3),), (0, 1), _PAIRS,
        ),
    )
}  # fmt: skip


@dataclass
class Question:
    """One question to one rater, and its answer once there is one (None; a choice; or -1 for "can't say")."""

    number: int
    rater: str
    reason: str  # random, start, active, repeat, catch, practice
    shown: Shown
    choice: int | None = None
    time: float = 0.0
    seconds: float = 0.0
    hidden: float = 0.0  # part of these seconds with the page out of sight
    of: int | None = None  # the question that a repeat repeats

    @property
    def is_learned(self) -> bool:
        """Whether the model trains on its answer; those drawn at random are held out."""
        return self.reason in ("active", "start") and self.choice is not None and self.choice >= 0
