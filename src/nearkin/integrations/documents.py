"""Documents under ids, and the index of their vectors: what the stores of other libraries share."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from nearkin._check import check_choice
from nearkin._faiss import answered
from nearkin._fields import StrPath
from nearkin._guard import Guard
from nearkin._storage import one_version, open_file, read_config, saving_folder
from nearkin._types import ArrayLike, Record
from nearkin.contracts import Quantizer
from nearkin.index import Index

KIND, METRICS = "documents", ("cosine", "ip", "l2")
_FILE, _INDEX = "documents.jsonl", "index"


def listed(ids: Iterable[object]) -> list[str]:
    """Ids as a list of text; TypeError for a single one, whose letters would be ids."""
    if isinstance(ids, str):
        raise TypeError(f"ids is {ids!r}; it must be a list: [{ids!r}]")
    return [str(name) for name in ids]


def _line(record: Record) -> str:
    try:
        return json.dumps(record) + "\n"
    except TypeError as error:
        raise TypeError(f"document {record['id']!r} cannot be saved: {error}; use text, numbers and lists") from error


class Documents:
    """Records under string ids, some with a vector. `quantizer` as in `Index.build`, which the first vectors make; one
    that is not fitted learns from these. Threads may share them: `guard` is that of an index."""

    def __init__(self, quantizer: Quantizer | int | None = None, metric: str = "cosine") -> None:
        self.quantizer: Quantizer | int | None = quantizer
        self.metric: str = check_choice(metric, "metric", METRICS)
        self.index: Index | None = None
        self.records: dict[str, Record] = {}
        self.guard = Guard()
        self._folder: str | None = None

    def put(self, ids: Sequence[str], records: Sequence[Record], vectors: Sequence[ArrayLike | None]) -> None:
        """Add records under ids, or replace them, with their vectors or None. ValueError for an id given twice."""
        if len(set(ids)) < len(ids):
            raise ValueError("ids hold an id twice; give each document its own")
        known = [i for i, vector in enumerate(vectors) if vector is not None]
        names = [ids[i] for i in known]
        X = np.array([vectors[i] for i in known], np.float32)
        with self.guard.writing():
            if self.index is None and names:
                self.index = Index.build(X, self.quantizer, names, self.metric)
            elif self.index is not None:
                self.index.upsert(X, names)
                self.index.remove([ids[i] for i, vector in enumerate(vectors) if vector is None], missing="ignore")
            self.records |= dict(zip(ids, records, strict=True))

    def remove(self, ids: Iterable[object]) -> None:
        """Take out the records of ids; unknown ones are passed over. TypeError for a single id."""
        names = listed(ids)
        with self.guard.writing():
            if self.index is not None:
                self.index.remove(list(dict.fromkeys(names)), missing="ignore")
            for name in names:
                self.records.pop(name, None)

    def nearest(
        self, vector: ArrayLike, k: int, keep: Callable[[str], bool] | None = None
    ) -> tuple[list[str], list[float]]:
        """Ids and scores of up to k records with a vector near to this one (d,), of those whose ids `keep` accepts;
        called, and its answers used, while `guard.reading()`."""
        if self.index is None or not len(self.index):
            return [], []
        among = None if keep is None else [name for name in self.index.row_ids.tolist() if keep(name)]
        if among == []:
            return [], []
        scores, ids = self.index.search(np.asarray(vector, np.float32)[None], k, among=among)
        found = answered(scores)
        return ids[found].tolist(), scores[found].tolist()

    def save(self, path: StrPath, library: str, overwrite: bool = False) -> None:
        """Write a folder: the documents of that library as lines of JSON, and the index as `nk.Index.load` reads it. It
        appears whole or not at all; TypeError for a record that JSON cannot hold."""
        place, config = os.path.realpath(path), {"library": library, "metric": self.metric}
        with self.guard.reading(), saving_folder(path, KIND, config, overwrite or place == self._folder) as folder:
            lines = (_line({"id": name, **record}) for name, record in self.records.items())
            (folder / _FILE).write_text("".join(lines), encoding="utf-8")
            if self.index is not None:
                self.index.save(folder / _INDEX)
        self._folder = place

    @classmethod
    def load(cls, path: StrPath, library: str) -> Self:
        """The documents of that library in a folder that `save` wrote; ValueError for another or a damaged one."""
        found = one_version(path, lambda folder: cls._read(folder, library))
        found._folder = os.path.realpath(path)
        return found

    @classmethod
    def _read(cls, path: Path, library: str) -> Self:
        config = read_config(path, KIND)
        check_choice(config["library"], f"library in {path / 'config.json'}", (library,))
        found = cls(metric=config["metric"])
        with open_file(path / _FILE) as file:
            lines = [json.loads(line) for line in file.read().decode("utf-8").split("\n") if line]
        found.records = {line.pop("id"): line for line in lines}
        if (path / _INDEX).is_dir():
            found.index = Index.load(path / _INDEX)
            if not set(found.index.row_ids.tolist()) <= set(found.records):
                raise ValueError(f"{path} has vectors without a document; it is damaged or mixed from two")
        return found
