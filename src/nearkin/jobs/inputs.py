"""Inputs of commands: vectors and queries from files or saved folders, ids, and tables of new pairs."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import nearkin as nk
from nearkin._check import as_array, check_choice
from nearkin._fields import StrPath, counted
from nearkin._storage import one_version, read_arrays, read_config, unpack_ids
from nearkin._types import ArrayLike, Record
from nearkin.data import VectorFile, open_vectors, read_column, read_table
from nearkin.data.files import FRAMES, TEXT, locate
from nearkin.data.formats.file_rows import array_rows
from nearkin.embedding import saved_towers
from nearkin.index.identifiers import RowIds
from nearkin.jobs.run import RUN, read_record
from nearkin.records import Interactions

SIDES = ("left", "right")
MAP = "ordinal-embedding"
LEFT = "left.safetensors"  # the left side of the index, in a folder of `nearkin train`
_KINDS = {"index": "an index", MAP: "coordinates of comparisons"}
FEWEST_QUERIES = 20  # needed to judge codes


class SideNames(NamedTuple):
    """The names of the two columns of ids in a table of pairs; "left" and "right" for a table without names."""

    left: str = "left"
    right: str = "right"

    @classmethod
    def of(cls, columns: Mapping[str, str]) -> "SideNames":
        """The names of columns, by side; a number, of a table without a header, is none."""
        return cls(**{side: name for side, name in columns.items() if not name.isdigit()})


class GivenVectors(NamedTuple):
    """The vectors that a command was given; for those of a saved folder also their ids and metric.

    `left` (m, d) are the left vectors of a folder of pairs whose right vectors these are: they are its queries.
    """

    file: VectorFile
    ids: np.ndarray | None = None
    metric: str | None = None
    left: np.ndarray | None = None
    about: str = ""  # how a table was understood

    def queries(self, metric: str | None) -> np.ndarray | None:
        """The left vectors, if the codes will be searched by inner product and there are enough for a recall."""
        return self.left if metric == "ip" and self.left is not None and len(self.left) >= FEWEST_QUERIES else None


class GivenQueries(NamedTuple):
    """Queries (q, d), their names (the column in a file of ids, else the ids that the file holds, else row numbers),
    and how a table of them was understood."""

    vectors: np.ndarray
    ids: np.ndarray
    about: str = ""


def open_file(path: StrPath) -> VectorFile:
    """The vectors alone of a file or a folder."""
    return open_given(path).file if split_side(path)[0].is_dir() else open_vectors(path)


def split_side(path: StrPath) -> tuple[Path, str | None]:
    """The folder and the side in "FOLDER:left" or "FOLDER:right"; None for a path alone."""
    head, colon, side = os.fspath(path).rpartition(":")
    if colon and not os.path.exists(path) and Path(head).is_dir():
        return Path(head), check_choice(side, f"the side in {os.fspath(path)}", SIDES)
    return Path(path), None


def open_given(path: StrPath, default: str = "right", ids: StrPath | None = None) -> GivenVectors:
    """The vectors of a file, of a folder of parts or of a saved folder, and their ids, those in the file `ids` if it is
    given. Of pairs: the vectors of the side in "FOLDER:left", or else of the `default` one."""
    folder, side = split_side(path)
    is_saved = folder.is_dir() and ((folder / "config.json").is_file() or not any(folder.iterdir()))
    if not is_saved and side is None:
        file = open_vectors(path)
        if ids is None:
            return GivenVectors(file, file.ids(), about=file.about)
        about = f"{file.about}; ids from {ids}" if file.about else ""
        return GivenVectors(file, read_column(ids, len(file)), about=about)
    vectors, own, metric, left = one_version(folder, lambda path: _vectors_of(path, side, default))
    X = np.ascontiguousarray(vectors, np.float32)
    names = own if ids is None else read_column(ids, len(X))
    return GivenVectors(VectorFile(str(path), array_rows(X, folder / "config.json")), names, metric, left)


def _vectors_of(folder: Path, side: str | None, default: str) -> tuple[np.ndarray, np.ndarray, str, np.ndarray | None]:
    """Vectors, ids, metric and left vectors of a saved folder."""
    kind = read_config(folder)["kind"]
    if kind == MAP:
        if side is not None:
            raise ValueError(f"{folder} holds coordinates of one kind of object and no side {side}; leave :{side} out")
        model = nk.OrdinalEmbedding.load(folder)
        return model.embedding_, model.objects_, "l2", None
    sides = read_sides(folder)
    if sides is not None:
        if (side or default) == "left":
            return sides.left, sides.left_ids, "ip", None
        return sides.right_vectors(), sides.right_ids, "ip", sides.left
    if kind == "index":
        index = nk.Index.load(folder)
        return decoded(index), index.row_ids, index.metric, None
    raise ValueError(f"{folder} holds the kind {kind!r}; give a file of vectors, or a folder of `nearkin embed`")


@dataclass(frozen=True)
class Sides:
    """Left vectors (m, d), right vectors (n, d) or an index of them, the ids, and the seen pairs' weights (m, n)."""

    left: np.ndarray
    left_ids: np.ndarray
    right: "np.ndarray | nk.Index"
    right_ids: np.ndarray
    seen: sp.csr_matrix
    names: SideNames

    def right_vectors(self) -> np.ndarray:
        """(n, d) vectors of the right side, decoded if there are codes."""
        return decoded(self.right) if isinstance(self.right, nk.Index) else self.right


def read_sides(folder: Path) -> Sides | None:
    """Both sides of pairs, in a folder of `nearkin embed` or `nearkin train`; None for any other folder."""
    names = side_names(folder)
    if holds_pairs(folder):
        towers = saved_towers.read_towers(folder)
        pairs = towers.pairs
        return Sides(towers.left, pairs.left_ids, towers.right, pairs.right_ids, pairs.matrix(), names)
    if not (folder / LEFT).is_file():
        return None
    arrays, index = read_arrays(folder / LEFT), nk.Index.load(folder)
    shape = len(arrays["vectors"]), len(index)
    seen = sp.csr_matrix((arrays["weights"], arrays["indices"], arrays["indptr"]), shape)
    return Sides(arrays["vectors"], unpack_ids("left", arrays), index, index.row_ids, seen, names)


def open_sides(folder: StrPath) -> Sides:
    """The sides in a folder of `nearkin embed` (pairs) or `nearkin train`; ValueError for any other."""
    sides = one_version(folder, read_sides)
    if sides is None:
        kind = read_config(folder)["kind"]
        raise ValueError(
            f"{folder} holds {_KINDS.get(kind, kind)} and no left side to recommend to; give a folder of `nearkin "
            "embed` made of pairs, or of `nearkin train`. For similar entities: nearkin similar"
        )
    return sides


def decoded(index: nk.Index) -> np.ndarray:
    """(n, d) float32, the decoded vectors of an index; ValueError for bits, which have no decoder."""
    if index.metric == "hamming":
        raise ValueError("the index holds bits and no vectors; give these, or compress again with keep_vectors=True")
    return nk.export.Source(index).decoded(np.arange(len(index)))


def open_index(folder: StrPath) -> nk.Index:
    """The index in a folder; for a folder of vectors an exact index of them (of pairs: of the right side)."""
    if read_config(folder)["kind"] == "index":
        return nk.Index.load(folder)
    given = open_given(folder)
    return nk.Index.build(given.file.read(), ids=given.ids, metric=given.metric or "l2")


def open_queries(path: StrPath, ids: StrPath | None = None) -> GivenQueries:
    """The queries in a file or, of a folder of pairs, its left side."""
    given = open_given(path, "left", ids)
    given.file.check_finite()
    X = given.file.read()
    return GivenQueries(X, np.arange(len(X)) if given.ids is None else given.ids, given.about)


@dataclass
class Unknown:
    """The treatment of ids that a folder lacks: an error, or a note."""

    drop: bool = False
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, choice: str) -> "Unknown":
        """The treatment by its name, "raise" or "drop"."""
        return cls(check_choice(choice, "unknown", ("raise", "drop")) == "drop")

    def leave_out(self, text: str) -> None:
        """Note what is left out; ValueError unless unknown ids are dropped."""
        if not self.drop:
            raise ValueError(f"{text}; type unknown='drop' to leave them out")
        self.notes.append(f"left out: {text}")


def known_pairs(history: Interactions, known: np.ndarray, side: str, name: str, unknown: Unknown) -> Interactions:
    """The pairs of a table whose ids of one side are `known`; `name` is that side's column."""
    ids, numbers = getattr(history, f"{side}_ids"), history.indices if side == "right" else history.rows
    keep = places_of(ids, known)[numbers] >= 0
    if keep.all():
        return history
    source, first = "the table" if history.source is None else history.source.source, ids[numbers[~keep][0]].item()
    lost = counted(int((~keep).sum()), "pair")
    unknown.leave_out(f"{lost} of {source} without a known {name}, the first is {first!r}")
    if not keep.any():
        raise ValueError(f"{source} has no pair with a known {name}; give pairs of the ids that the folder knows")
    left, right = history.left_ids[history.rows], history.right_ids[history.indices]
    times = None if history.timestamps is None else history.timestamps[keep]
    kept = Interactions.from_pairs(left[keep], right[keep], history.weights[keep], times)
    return replace(kept, source=history.source)


def find_ids(wanted: ArrayLike, ids: np.ndarray, name: str, unknown: Unknown | None = None) -> np.ndarray:
    """Positions (b,) of `wanted` among ids, compared as text; ValueError that shows some known ones.

    With `unknown` that drops, those that are not among the ids are left out. Ids typed where the terminal is not UTF-8
    are read as UTF-8.
    """
    if (typed := as_array(wanted, name)).dtype.kind == "U":
        wanted = [os.fsencode(cell).decode("utf-8", "replace") if _undecoded(cell) else cell for cell in typed.tolist()]
    check_typed(wanted, ids)
    places = places_of(wanted, ids)
    missing = np.asarray(wanted)[places < 0]
    if len(missing):
        some = ", ".join(map(str, ids[:5].tolist()))
        more = f" (and {counted(len(missing) - 1, 'other')})" if len(missing) > 1 else ""
        text = f"{name} {str(missing[0])!r}{more} is not among the {counted(len(ids), 'known id')}, such as {some}"
        if unknown is None:
            raise ValueError(text)
        unknown.leave_out(text)
        if len(missing) == len(places):
            raise ValueError(f"no {name} of {len(places):,} is known; known are {some}")
    return places[places >= 0]


def check_typed(wanted: object, ids: np.ndarray) -> None:
    """ValueError for a typed word, one of a list, that is no id but a file: with unknown ids dropped, nothing would be
    done."""
    files = [word for word in wanted if os.path.isfile(word)] if isinstance(wanted, list) else []
    for word, place in zip(files, places_of(files, ids), strict=True):
        if place < 0:
            raise ValueError(
                f"{word!r} is a file and none of the {counted(len(ids), 'known id')}; type ids here, or the file as an "
                "argument: ids=FILE to remove, left_ids=FILE to recommend"
            )


def as_own(ids: ArrayLike, own: np.ndarray | None) -> np.ndarray:
    """Ids in the type of the index's ids `own`; numbers may be given as text."""
    given = as_array(ids, "ids")
    if given.dtype.kind == "U" and (own is None or own.dtype.kind != "U"):
        wrong = [text for text in given.tolist() if not text.lstrip("-").isdecimal()]
        if wrong:
            way = "give numbers, or compress all vectors again with ids that are text"
            raise ValueError(f"id {wrong[0]!r} is no number, and the ids of this index are numbers; {way}")
        return given.astype(np.int64)
    return given.astype(str) if own is not None and own.dtype.kind == "U" else given


def _undecoded(cell: str) -> bool:
    """Whether Python could not decode an argument of the command line."""
    return any("\ud800" <= letter <= "\udfff" for letter in cell)


def places_of(wanted: ArrayLike, ids: np.ndarray) -> np.ndarray:
    """Positions (m,) of `wanted` among ids, compared as text; -1 for an unknown one."""
    return RowIds(ids.astype(str), len(ids)).positions(as_array(wanted, "ids").astype(str))


def ids_of_rows(path: StrPath) -> np.ndarray | None:
    """The ids (n,) of the rows of a table of which `path`, file.csv:column, names one column; None without a column of
    ids, under a usual name."""
    where = locate(path)
    if where.key is None or where.suffix not in (*TEXT, *FRAMES):
        return None
    column = read_table(where.path).role("id", taken=[where.key])
    ids = None if column is None else np.array(column.text())
    return ids if ids is not None and len(np.unique(ids)) == len(ids) else None


def pairs_behind(index: StrPath) -> str | None:
    """The folder of pairs that an index was made of, if it is still there."""
    data = (read_record(index, RUN) or {}).get("data")
    return data if isinstance(data, str) and holds_pairs(data) else None


def holds_pairs(folder: StrPath) -> bool:
    """Whether a folder holds the vectors of both sides of pairs."""
    return (Path(folder) / "config.json").is_file() and read_config(folder)["kind"] == saved_towers.KIND


def side_names(folder: StrPath) -> SideNames:
    """The names of both sides in the table that a folder was made from."""
    return SideNames.of((read_record(folder, RUN) or {}).get("words", {}))


def columns_of(pairs: Interactions) -> dict[str, str]:
    """The columns of both sides in the table that the pairs were read from."""
    roles = {} if pairs.source is None else pairs.source.roles
    return {side: roles.get(side, side) for side in SIDES}


def read_as(path: StrPath, start: StrPath | None, columns: Record) -> tuple[Interactions, Record]:
    """The pairs of a table, read in the columns that the folder `start` was made of where it has them. Also the options
    timestamp and min_weight for tables of this form, and as "words" the columns of both sides."""
    was: Record = {} if start is None else read_record(start, RUN) or {}
    when = columns.get("timestamp") or was.get("timestamp")
    least = was.get("min_weight") if columns.get("min_weight") is None else columns["min_weight"]
    text = {name: columns[name] for name in ("header", "delimiter", "encoding") if name in columns}
    columns = {name: value for name, value in columns.items() if name not in text}
    table, words = read_table(path, **text), was.get("words")
    # a table of later pairs may have no weights
    if columns.get("min_weight") is not None or table.role("weight", columns.get("weight")) is not None:
        columns = {**columns, "min_weight": least}
    if words and columns.get("left") is None and columns.get("right") is None:
        for times in dict.fromkeys((when, columns.get("timestamp"))):
            with suppress(ValueError):  # a table with other columns is read like a first table
                pairs = nk.read_interactions(table, **{**columns, **words, "timestamp": times})
                return pairs, {"timestamp": when, "min_weight": least, "words": words}
    pairs = nk.read_interactions(table, **columns)
    when = when or (None if pairs.source is None else pairs.source.roles.get("timestamp"))
    return pairs, {"timestamp": when, "min_weight": least, "words": words or columns_of(pairs)}


def read_history(path: StrPath, folder: StrPath, missing: str = "raise") -> Interactions:
    """A table of new pairs, read as that which the folder was made from; `missing` is "raise" or "drop"."""
    return read_as(path, split_side(folder)[0], {"missing": missing})[0]
