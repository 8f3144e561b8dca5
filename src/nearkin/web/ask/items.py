"""What people compare: pictures or sounds of a folder, the rows of a table, or the objects of an embedding."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nearkin.data.tables import read_table
from nearkin.embedding.ordinal import OrdinalEmbedding

_MEDIA = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".webp"), "image"),
    **dict.fromkeys((".mp3", ".wav", ".ogg", ".m4a"), "sound"),
}
_COLUMNS = {
    "id": ("id", "name", "item", "object"),
    "text": ("text", "label", "title", "description"),
    "file": ("image", "picture", "photo", "sound", "audio", "file"),
    "link": ("link", "url"),
}


@dataclass(frozen=True)
class Items:
    """n things under different names; each is shown by its file (a picture or a sound), its text, or both.

    `files` and `links` hold None where an item has none. Files are served by the item's number, never by a path.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    files: Sequence[Path | None]
    links: Sequence[str | None]

    def __post_init__(self) -> None:
        if len(self.ids) < 3:
            raise ValueError(f"there are {len(self.ids)} items; at least 3 are needed to compare")
        twice = [name for name, count in Counter(self.ids).items() if count > 1]
        if twice:
            raise ValueError(f"items repeat the name {twice[0]!r}; each needs a name of its own")

    def __len__(self) -> int:
        return len(self.ids)

    def shown(self, number: int) -> dict[str, object]:
        """What the page needs to show an item."""
        file, link = self.files[number], self.links[number]
        kind = None if file is None else _MEDIA[file.suffix.lower()]
        return {"number": number, "text": self.texts[number], "media": kind, "link": link}


def read_items(path: str | os.PathLike, *, header: bool | None = None) -> Items:
    """Items of a folder of pictures or sounds, of a table (.csv, .tsv, .parquet), or of a saved ordinal embedding.

    A table has one column of names, or columns called id (name), text (label), image or sound (files beside the table)
    and link; `header` says whether its first line names the columns (None looks). FileNotFoundError, or ValueError for
    fewer than three items, names that repeat, or files that are missing or lie outside the table's folder.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a folder of pictures, a table, or an embedding's folder")
    if not path.is_dir():
        return _of_table(path, header)
    return _of_embedding(path) if (path / "config.json").is_file() else _of_folder(path)


def named_items(names: Sequence[object]) -> Items:
    """Items that are only names."""
    texts = [str(name) for name in names]
    return Items(texts, texts, [None] * len(texts), [None] * len(texts))


def _of_folder(path: Path) -> Items:
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in _MEDIA and file.is_file())
    if not found:
        raise ValueError(f"{path} holds no picture or sound ({', '.join(_MEDIA)})")
    stems = [file.stem for file in found]
    names = stems if len(set(stems)) == len(stems) else [file.name for file in found]
    return Items(names, [""] * len(found), found, [None] * len(found))


def _of_embedding(path: Path) -> Items:
    return named_items(OrdinalEmbedding.load(path).objects_.tolist())


def _of_table(path: Path, header: bool | None) -> Items:
    table = read_table(path, header=True if header is None and _is_headed(path) else header)
    columns = {name.strip().lower(): [str(v) for v in column.values] for name, column in table.columns.items()}
    found = {role: next((columns[name] for name in names if name in columns), None) for role, names in _COLUMNS.items()}
    if found["id"] is None and found["text"] is None:
        if len(columns) > 1:
            raise ValueError(
                f"{path} has the columns {', '.join(columns)}; call the names' column id, and others text, image, "
                "sound or link"
            )
        found["id"] = next(iter(columns.values()))
    names = found["id"] or found["text"] or []
    empty = [""] * len(names)
    texts = found["text"] or (names if found["file"] is None else empty)
    files = [_inside(path.parent, name) if name else None for name in found["file"] or empty]
    return Items(names, texts, files, [_checked_link(link) for link in found["link"] or empty])


def _is_headed(path: Path) -> bool:
    """Whether the first line uses the words by which columns are told apart, so that it can be no item."""
    known = {name for names in _COLUMNS.values() for name in names}
    return {name.strip().lower() for name in read_table(path, header=True).columns} <= known


def _inside(folder: Path, name: str) -> Path:
    file = (folder / name).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise ValueError(f"{name} lies outside {folder}; put files beside the table")
    if file.suffix.lower() not in _MEDIA or not file.is_file():
        raise ValueError(f"{file} is no picture or sound that is there ({', '.join(_MEDIA)})")
    return file


def _checked_link(text: str) -> str | None:
    if text and not text.startswith(("https://", "http://")):
        raise ValueError(f"the link {text!r} must begin with https:// or http://")
    return text or None
