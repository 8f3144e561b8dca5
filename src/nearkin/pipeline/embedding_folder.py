"""The vectors in a folder that `nearkin embed` or `nearkin train` wrote, under the file's ids and words."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nearkin as nk
from nearkin._check import check_choice
from nearkin._storage import one_version, read_arrays, read_config, unpack_ids
from nearkin.data import VectorFile, open_vectors, read_column
from nearkin.data.formats.file_rows import array_rows
from nearkin.embedding import saved_towers
from nearkin.export.source import Source
from nearkin.pipeline.folder import RUN, read_record
from nearkin.pipeline.left_side import LEFT
from nearkin.records import Interactions

SIDES = ("left", "right")
MAP = "ordinal-embedding"
_ENOUGH = 20  # left vectors to judge codes by


class Words(NamedTuple):
    """What the file calls its two sides: the names of the columns, "left" and "right" where it has none."""

    left: str = "left"
    right: str = "right"


class Given(NamedTuple):
    """Vectors that a command was given: rows, and where they come from a folder their ids and metric.

    `left` (m, d) are the left vectors of a folder whose right ones were given: the queries that these are made for.
    """

    file: VectorFile
    ids: np.ndarray | None = None
    metric: str | None = None
    left: np.ndarray | None = None

    def asking(self, metric: str | None) -> np.ndarray | None:
        """The left vectors, where codes will be searched by inner product and these are enough to judge them by."""
        return self.left if metric == "ip" and self.left is not None and len(self.left) >= _ENOUGH else None


def open_given(path: str | os.PathLike, side: str | None = None, usual: str = "right") -> Given:
    """The vectors of a file, or those of a folder: one side of pairs (`usual` unless told), or coordinates.

    ValueError for a side of anything but pairs, and for a folder that holds no vectors.
    """
    folder = Path(path)
    if not folder.is_dir():
        if side is not None:
            raise ValueError(f"--side is for a folder of `nearkin embed`; {path} is a file of vectors")
        file = open_vectors(path)
        return Given(file, file.ids())
    check_choice(side, "--side", (None, *SIDES))
    vectors, ids, metric, left = one_version(folder, lambda path: _side_of(path, side, usual))
    X = np.ascontiguousarray(vectors, np.float32)
    return Given(VectorFile(str(path), array_rows(X), [str(folder / "config.json")]), ids, metric, left)


def _side_of(folder: Path, side: str | None, usual: str) -> tuple[np.ndarray, np.ndarray, str, np.ndarray | None]:
    kind = read_config(folder)["kind"]
    if kind == MAP:
        if side is not None:
            raise ValueError(f"--side is for pairs; {folder} holds coordinates of one kind of object")
        model = nk.OrdinalEmbedding.load(folder)
        return model.embedding_, model.objects_, "l2", None
    chosen = side or usual
    if kind == saved_towers.KIND:
        towers = saved_towers.read_towers(folder)
        if chosen == "left":
            return towers.left, towers.pairs.left_ids, "ip", None
        return towers.right, towers.pairs.right_ids, "ip", towers.left
    left = read_arrays(folder / LEFT) if (folder / LEFT).is_file() else None
    if left is not None and chosen == "left":
        return left["vectors"], unpack_ids("left", left), "ip", None
    if kind == "index":
        index = nk.Index.load(folder)
        own = np.arange(len(index)) if index.ids is None else index.ids
        return decoded(index), own, index.metric, None if left is None else left["vectors"]
    raise ValueError(f"{folder} holds the kind {kind!r}; give a file of vectors, or a folder of `nearkin embed`")


def open_index(folder: str | os.PathLike) -> nk.Index:
    """The index in a folder; of a folder of vectors one that searches all of them exactly, the right side of pairs."""
    if read_config(folder)["kind"] == "index":
        return nk.Index.load(folder)
    given = open_given(folder)
    return nk.Index.build(given.file.read(), ids=given.ids, metric=given.metric or "l2")


class Asked(NamedTuple):
    """Queries (q, d), what they are called in hits (q,), and what a table of them was taken for."""

    vectors: np.ndarray
    ids: np.ndarray
    about: str = ""


def open_queries(path: str | os.PathLike, side: str | None = None, ids: str | os.PathLike | None = None) -> Asked:
    """The queries in a file, called by the column in the file `ids` or by row numbers; of a folder its left side."""
    given = open_given(path, side, "left")
    given.file.check_finite()
    X, names = given.file.read(), given.ids
    if ids is not None:
        names = read_ids(ids, len(X))
        if len(names) != len(X):
            raise ValueError(f"{ids} has {len(names)} ids and there are {len(X)} queries; give one for each")
    return Asked(X, np.arange(len(X)) if names is None else names, given.file.about)


def read_ids(path: str | os.PathLike, n: int | None = None, word: str | None = None) -> np.ndarray:
    """The ids in a file, one a row, without a first line that is their name: one more than `n`, or the text `word`."""
    ids = read_column(path, n)
    if not len(ids) or ids.dtype.kind != "U" or ids[0] != word:
        return ids
    rest = ids[1:]
    whole = all(text.isdecimal() and str(int(text)) == text for text in rest.tolist())
    return rest.astype(np.int64) if whole else rest


def decoded(index: nk.Index) -> np.ndarray:
    """(n, d) float32, what the codes of an index stand for; ValueError for bits, which stand for nothing."""
    if index.metric == "hamming":
        raise ValueError("the index holds bits, from which no vectors can be read; give the vectors themselves")
    return Source(index).decoded(np.arange(len(index)))


def words_of(folder: str | os.PathLike) -> Words:
    """What the file that a folder was made of calls its sides."""
    run = read_record(folder, RUN) or {}
    return Words(**run.get("words", {}))


def read_history(path: str | os.PathLike, words: Words) -> Interactions:
    """A table of newcomers' pairs, in the columns that the first table had."""
    return nk.read_interactions(path, **({} if words == Words() else words._asdict()))


def words_in(pairs: Interactions) -> Words:
    """The columns' names of both sides; "left" and "right" where the table has none."""
    roles = {} if pairs.source is None else pairs.source.roles
    return Words(**{side: name for side in ("left", "right") if not (name := roles.get(side, side)).isdigit()})
