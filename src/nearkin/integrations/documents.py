"""Documents under ids, and the index of their vectors: what the stores of other libraries share."""

import copy
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from pathlib import Path
from typing import Self
from uuid import uuid4

import numpy as np

from nearkin._check import check_choice, check_integer, check_real
from nearkin._faiss import answered
from nearkin._fields import Extra, StrPath, counted
from nearkin._json import parsed_json
from nearkin._storage import one_version, open_file, read_config, saving_folder
from nearkin._types import ArrayLike, Record
from nearkin.contracts import Quantizer, VectorCodes
from nearkin.index import Index

KIND, METRICS = "documents", ("cosine", "ip", "l2")
ENOUGH = 10_000  # vectors that train a quantizer: FAISS asks for 39 a centroid, and a byte has 256
_FILE, _INDEX = "documents.jsonl", "index"


def listed(ids: Iterable[object]) -> list[str]:
    """Ids as a list of text, new ones for None. TypeError for a single one, whose letters would be ids; ValueError for
    -1, which marks a missing value."""
    if isinstance(ids, str):
        raise TypeError(f"ids is {ids!r}; it must be a list: [{ids!r}]")
    if -1 in (ids := list(ids)):
        raise ValueError("ids hold -1, which marks a missing value; give each document its id")
    return [str(uuid4() if name is None else name) for name in ids]


def check_comparable(wanted: Record, metadata: list[Record]) -> None:
    """TypeError for a wanted value such as "7" where every document has a number under its key, or 7 where all have
    texts: none is equal."""
    for key, value in wanted.items():
        others = [one[key] for one in metadata if one.get(key) is not None]
        if value is not None and others and all(isinstance(one, str) != isinstance(value, str) for one in others):
            raise TypeError(f"filter[{key!r}] is {value!r}; all documents have other types, such as {others[0]!r}")


@dataclass(eq=False, repr=False)
class Documents:
    """Records under string ids, some with a vector, for searches by `metric`.

    quantizer: None for exact search; a fitted quantizer; or bytes a vector, as in `Index.build`: codes are trained once
        10,000 vectors are there, until then a search is exact.
    keep_vectors, oversample: rescoring, as in `Index.build` and `Index.search`.

    Threads may share them: whoever reads or changes them holds the `lock`.
    """

    quantizer: Quantizer | int | None = None
    metric: str = "cosine"
    keep_vectors: bool | str = False
    oversample: float | None = None
    index: Index | None = field(default=None, init=False)
    records: dict[str, Record] = field(default_factory=dict, init=False)
    lock: Extra = field(default_factory=threading.RLock, init=False)

    def __post_init__(self) -> None:
        self.index = None
        check_choice(self.metric, "metric", METRICS)
        Index.empty(1, keep_vectors=self.keep_vectors)  # now, and not with the 10,000th document
        if self.oversample is not None and check_real(self.oversample, "oversample", low=1) and not self.keep_vectors:
            raise ValueError(f"oversample is {self.oversample}; it ranks by kept vectors: give keep_vectors=True too")
        if isinstance(self.quantizer, VectorCodes):
            d = self.quantizer.n_features_in_
            self.index = Index.empty(d, self.quantizer, self.metric, keep_vectors=self.keep_vectors)
        elif isinstance(self.quantizer, Real):
            self.quantizer = check_integer(self.quantizer, "quantizer", low=1)
        elif self.quantizer is not None:
            raise TypeError(f"quantizer is {self.quantizer!r}; give bytes a vector, or a quantizer that is fitted")

    def __repr__(self) -> str:
        waits = isinstance(self.quantizer, int) and (self.index is None or self.index.quantizer is None)
        later = f", exact until {ENOUGH:,}, then {self.quantizer} bytes each" if waits else ""
        return f"{counted(len(self.records), 'document')}{later}, {self.index or 'no vectors'}"

    def __getstate__(self) -> Record:
        with self.lock:  # a copy or pickle is of one moment
            return vars(self) | {"index": copy.copy(self.index), "records": dict(self.records), "lock": None}

    def __setstate__(self, state: Record) -> None:
        vars(self).update(state, lock=threading.RLock())

    def put(self, ids: Sequence[str], records: Sequence[Record], vectors: Sequence[ArrayLike | None]) -> None:
        """Add records under ids, or replace them, with their vectors or None; train the quantizer of an index that is
        still exact, if there are enough vectors. ValueError for an id given twice."""
        if len(set(ids)) < len(ids):
            raise ValueError(f"ids hold {Counter(ids).most_common(1)[0][0]!r} twice; give each document its own")
        rows = {name: vector for name, vector in zip(ids, vectors, strict=True) if vector is not None}
        X = np.array(list(rows.values()), np.float32)
        self._check_directions(X, lambda place: f"document {place} ({list(rows)[place]!r})")
        with self.lock:
            if self.index is not None:
                self.index.upsert(X, list(rows)).remove(list(set(ids) - set(rows)), unknown="drop")
            elif rows:
                self.index = Index.build(X, None, list(rows), self.metric)
            self.records |= dict(zip(ids, records, strict=True))
            index, quantizer = self.index, self.quantizer
            if isinstance(quantizer, int) and index is not None and index.quantizer is None and len(index) >= ENOUGH:
                X, names = index.vectors(index.row_ids), index.row_ids
                self.index = Index.build(X, quantizer, names, self.metric, keep_vectors=self.keep_vectors)

    def _check_directions(self, X: np.ndarray, name: Callable[[np.intp], str]) -> None:
        """ValueError for a row of zeros in X (n, d), by the name of its place, where rows are compared by cosine."""
        if self.metric == "cosine" and len(X) and not (rows := X.any(axis=1)).all():
            raise ValueError(f"the embedding of {name(rows.argmin())} is all zeros and has no cosine; leave it out")

    def remove(self, ids: Iterable[object]) -> None:
        """Take out the records of ids; unknown ones are passed over. TypeError for a single id."""
        names = listed(ids)
        with self.lock:
            if self.index is not None:
                self.index.remove(list(set(names)), unknown="drop")
                if not len(self.index):
                    self.__post_init__()  # what comes next trains the quantizer
            for name in names:
                self.records.pop(name, None)

    def accepted(self, keep: Callable[[str], bool] | None, ids: Iterable[object] | None = None) -> list[str]:
        """Those of the ids, all for None, that are here and that `keep` accepts."""
        names = list(self.records) if ids is None else listed(ids)
        return [name for name in names if name in self.records and (keep is None or keep(name))]

    def nearest(
        self, vector: ArrayLike, k: int, keep: Callable[[str], bool] | None = None
    ) -> tuple[list[str], list[float]]:
        """Ids and scores of up to k records with a vector near to this one (d,), of those whose ids `keep` accepts;
        called, and its answers used, under the `lock`."""
        among = None if keep is None or self.index is None else list(filter(keep, self.index.row_ids.tolist()))
        if self.index is None or not len(self.index) or among == []:
            return [], []
        Q = np.asarray(vector, np.float32)[None]
        self._check_directions(Q, lambda _: "the query")
        how = {"among": among, "oversample": None if self.index.kept is None else self.oversample}
        scores, ids = self.index.search(Q, k, **how)
        found = answered(scores)
        return ids[found].tolist(), scores[found].tolist()

    @classmethod
    def of(cls, store: object, settings: Record, **fixed: Extra) -> Self:
        """Documents by the settings of a store, and those `fixed` in it; TypeError for one that it does not have."""
        names = [one.name for one in fields(cls) if one.init and one.name not in fixed]
        if unknown := sorted(settings.keys() - set(names)):
            raise TypeError(f"{type(store).__name__} has no setting {unknown[0]!r}; it has {', '.join(names)}")
        return cls(**fixed, **settings)

    def save(self, path: StrPath, library: str, overwrite: bool = False) -> None:
        """Write a folder: the documents of that library as lines of JSON, and the index as `nk.Index.load` reads it. It
        appears whole or not at all; TypeError for a record that JSON cannot hold."""
        n_bytes = self.quantizer if isinstance(self.quantizer, int) else None  # a fitted one is in the index
        config = {"library": library, "settings": [n_bytes, self.metric, self.keep_vectors, self.oversample]}
        with self.lock, saving_folder(path, KIND, config, overwrite) as folder:
            with (folder / _FILE).open("w", encoding="utf-8") as file:
                for name, record in self.records.items():
                    file.write(json.dumps({"id": name, **record}) + "\n")
            if self.index is not None:
                self.index.save(folder / _INDEX)

    @classmethod
    def load(cls, path: StrPath, library: str) -> Self:
        """The documents of that library in a folder that `save` wrote; ValueError for another or a damaged one."""
        return one_version(path, lambda folder: cls._read(folder, library))

    @classmethod
    def _read(cls, path: Path, library: str) -> Self:
        config = read_config(path, KIND)
        check_choice(config["library"], f"library in {path / 'config.json'}", (library,))
        found = cls(*config["settings"])
        with open_file(path / _FILE) as file:
            lines = [parsed_json(line) for line in file.read().split(b"\n") if line]
        found.records = {line.pop("id"): line for line in lines}
        if (path / _INDEX).is_dir():
            found.index = Index.load(path / _INDEX)
            found.quantizer = found.quantizer or found.index.quantizer
            if not set(found.index.row_ids.tolist()) <= set(found.records):
                raise ValueError(f"{path} has vectors without a document; it is damaged or mixed from two")
        return found
