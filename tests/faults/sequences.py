"""Sequences of operations on an index, each compared with a plain NumPy model after every step.

The model keeps ids and rows in lists and decodes with the quantizer that the index was made with. Every array that goes
into a call, or comes out of one, is overwritten afterwards: the index must keep its own.
"""

import copy
import random
import shutil
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import faiss
import numpy as np

import nearkin as nk
from nearkin._faiss import innermost
from nearkin.linalg.norms import Norms, widened
from nearkin.quantization import (
    AxisQuantizer,
    ProductResidualQuantizer,
    ResidualQuantizer,
    ScalarQuantizer,
)
from tests.faults.child import Fault, refused

D, LISTS, STEPS = 8, 3, 30
_LONGEST = 30.0  # squared length of a long row of 8 normal numbers
_rng = np.random.default_rng(0)
_TRAIN = _rng.normal(size=(300, D)).astype(np.float32)
Operation = tuple[str, int]  # its name and the seed of its arguments


class Kind(NamedTuple):
    """A kind of index; `rounding` is by how much of a row's squared length FAISS's tables may round a score."""

    name: str
    make: Callable[[], Any]
    metric: str
    rounding: float = 0.0


def _product(n_centroids: int, n_lists: int = 0) -> Callable[[], Any]:
    return lambda: nk.ProductQuantizer(4, n_centroids, n_lists=n_lists, max_iter=2, random_state=0)


def _sums(norm_bits: int = 0, n_lists: int = 0, n_centroids: int = 16) -> Callable[[], Any]:
    return lambda: ResidualQuantizer(
        4, n_centroids, norm_bits=norm_bits, n_lists=n_lists, max_iter=2, beam_size=2, random_state=0
    )


_SCAN = 0.02  # of the tables' entries, in 8 bits; norms have 8 too
KINDS = [
    *(Kind(f"exact {metric}", lambda: None, metric) for metric in ("l2", "ip", "cosine")),
    *(Kind(f"product {metric}", _product(32), metric) for metric in ("l2", "ip", "cosine")),
    *(Kind(f"product 4 bits {metric}", _product(16), metric, _SCAN) for metric in ("l2", "ip", "cosine")),
    *(Kind(f"product lists {metric}", _product(32, LISTS), metric) for metric in ("l2", "ip", "cosine")),
    *(Kind(f"product 4 bits lists {metric}", _product(16, LISTS), metric, _SCAN) for metric in ("l2", "ip", "cosine")),
    *(Kind(f"sums {metric}", _sums(n_centroids=32), metric) for metric in ("l2", "ip", "cosine")),
    *(Kind(f"sums 8-bit norms {metric}", _sums(8), metric, _SCAN) for metric in ("l2", "ip")),
    Kind("sums 8-bit norms lists l2", _sums(8, LISTS), "l2", _SCAN),
    Kind("sums lists l2", _sums(0, LISTS, 32), "l2"),
    Kind("product sums ip", lambda: ProductResidualQuantizer(2, 2, 32, max_iter=2, random_state=0), "ip"),
    *(Kind(f"scalar {bits} bits l2", lambda bits=bits: ScalarQuantizer(bits), "l2") for bits in (4, 8, 16)),
    *(Kind(f"axes {metric}", lambda: AxisQuantizer(4), metric) for metric in ("l2", "ip", "cosine")),
    *(Kind(f"product and norms {metric}", _product(32), metric) for metric in ("l2", "ip")),
    *(Kind(f"product unit {metric}", _product(32), metric) for metric in ("l2", "ip")),
    Kind("product 4 bits unit l2", _product(16), "l2", _SCAN),
    *(Kind(f"product lists unit {metric}", _product(32, LISTS), metric) for metric in ("l2", "ip")),
    Kind("product 4 bits lists unit l2", _product(16, LISTS), "l2", _SCAN),
    Kind("sums 8-bit norms unit l2", _sums(8), "l2", _SCAN),
    Kind("sums 8-bit norms lists unit l2", _sums(8, LISTS), "l2", _SCAN),
    Kind("axes unit l2", lambda: AxisQuantizer(4), "l2"),
    Kind("bits", lambda: nk.RandomHyperplanes(16, random_state=0), "hamming"),
    Kind("learned bits", lambda: nk.ITQ(8, random_state=0), "hamming"),
]
NAMES = ("counted", "integers", "text")


@cache
def _fitted(number: int) -> Any:
    """The quantizer of a kind, fitted once; `fit` takes the rows that the metric compares."""
    quantizer, unit = KINDS[number].make(), KINDS[number].metric == "cosine" or "unit" in KINDS[number].name
    return None if quantizer is None else quantizer.fit(_unit(_TRAIN) if unit else _TRAIN)


def _unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _spoil(*arrays: object) -> None:
    """Overwrite the caller's arrays, as a reused buffer is."""
    for array in arrays:
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = "spoiled" if array.dtype.kind == "U" else -7


class Machine:
    """An index and its model, which take the same operations."""

    def __init__(self, kind: int, names: str, keep: bool, folder: Path) -> None:
        self.kind, self.names, self.keep, self.folder = KINDS[kind], names, keep, folder
        self.quantizer, self.original = _fitted(kind), copy.deepcopy(_fitted(kind))
        n_probe = LISTS if "lists" in self.kind.name else None
        norms = self.norms = Norms.learned(_TRAIN) if "and norms" in self.kind.name else None
        self.index = nk.Index.empty(D, self.original, self.kind.metric, keep_vectors=keep, n_probe=n_probe, norms=norms)
        self.ids: list[Any] = []
        self.rows = np.empty((0, D), np.float32)
        self.next_id = 0
        self.fresh = 0

    # the operations: each draws its arguments from `rng`

    def add(self, rng: random.Random) -> None:
        """Add up to nine rows under new ids."""
        X = self._draw_rows(rng, rng.randint(1, 9))
        ids = self._new_ids(len(X))
        given, names = X.copy(), None if ids is None else self._as_given(ids, rng)
        self.index.add(given, names)
        _spoil(given, names)
        self.ids += list(range(self.next_id, self.next_id + len(X))) if ids is None else ids
        self.next_id += len(X)
        self.rows = np.concatenate([self.rows, X])

    def add_refused(self, rng: random.Random) -> None:
        """Adding rows of another width, not finite, or under ids that cannot be, changes nothing."""
        X = self._draw_rows(rng, 2)
        calls: list[tuple[np.ndarray, object]] = [(X[:, :-1], self._new_ids(2)), (X * np.nan, self._new_ids(2))]
        if self.ids:
            calls.append((X, [*self._known(rng, 1), *(self._new_ids(1) or [10**9])]))
            calls.append((X, None if self.names != "counted" else ["a", "b"]))
        rows, ids = rng.choice(calls)
        refused(lambda: self.index.add(rows, ids), "add")

    def remove(self, rng: random.Random) -> None:
        """Remove some rows, now and then all, and pass over unknown ids."""
        if not self.ids:
            return
        self.index.remove([self._unknown()], unknown="drop").upsert([], [])
        gone = self.ids.copy() if rng.random() < 0.1 else self._known(rng, rng.randint(1, 6))
        given = self._as_given(gone, rng)
        self.index.remove(given)
        _spoil(given)
        stay = [i for i, name in enumerate(self.ids) if name not in gone]
        self.ids, self.rows = [self.ids[i] for i in stay], self.rows[stay]

    def remove_refused(self, rng: random.Random) -> None:
        """Removing an unknown id beside known ones changes nothing."""
        refused(lambda: self.index.remove([*self._known(rng, 2), self._unknown()]), "remove")

    def update(self, rng: random.Random) -> None:
        """Replace some rows; replaced rows move to the end."""
        names = self._known(rng, rng.randint(1, 5))
        if not names:
            return
        X = self._draw_rows(rng, len(names))
        given, wanted = X.copy(), self._as_given(names, rng)
        self.index.update(wanted, given)
        _spoil(given, wanted)
        self._replace(names, X)

    def _replace(self, names: list[Any], X: np.ndarray) -> None:
        """The model with rows X under these names behind the others."""
        stay = [i for i, name in enumerate(self.ids) if name not in names]
        self.rows = np.concatenate([self.rows[stay], X])
        self.ids = [self.ids[i] for i in stay] + names

    def update_refused(self, rng: random.Random) -> None:
        """Updating an unknown id, or with too few rows, changes nothing."""
        names = [*self._known(rng, 1), self._unknown()]
        rows = self._draw_rows(rng, rng.choice((1, len(names))))
        refused(lambda: self.index.update(names, rows), "update")

    def upsert(self, rng: random.Random) -> None:
        """Replace some rows and add others in one call; an index that counts its rows takes known ids only."""
        names = self._known(rng, rng.randint(0, 4))
        if self.names != "counted":
            names = names + (self._new_ids(rng.randint(1, 3)) or [])
        if not names:
            return
        rng.shuffle(names)
        X = self._draw_rows(rng, len(names))
        given, wanted = X.copy(), self._as_given(names, rng)
        self.index.upsert(given, wanted)
        _spoil(given, wanted)
        self._replace(names, X)

    def upsert_refused(self, rng: random.Random) -> None:
        """An id given twice, ids of another type, and too few rows change nothing."""
        names = self._known(rng, 2) or [0]
        calls: list[tuple[int, list[Any]]] = [(len(names) + 1, [*names, names[0]]), (1, [*names, *names])]
        if self.ids:
            calls.append((1, [5] if self.names == "text" else ["five"]))
        n, ids = rng.choice(calls)
        refused(lambda: self.index.upsert(self._draw_rows(rng, n), ids), "upsert")

    def select(self, rng: random.Random) -> None:
        """Search among some rows and without some, by ids or masks, for all queries or for each; fewer than k leave
        places without an answer."""
        if not self.ids:
            return
        n, Q = len(self.ids), self._draw_rows(rng, 2)
        k, sizes = rng.choice((1, 4, n)), (0, 1, 3, -(-n // 2), n)
        sets = [[self._known(rng, rng.choice(sizes[of == "among" :])) for _ in Q] for of in ("among", "exclude")]
        form, alike = rng.choice(("among", "exclude", "both")), rng.random() < 0.5
        sets = [[each[0], each[0]] if alike else each for each in sets]
        given = [[self._as_rows(one, rng) for one in (each[:1] if alike else each)] for each in sets]
        options = dict(zip(("among", "exclude"), ([each[0] if alike else each for each in given]), strict=True))
        if form != "both":
            options = {form: options[form]}
        for oversample in (None, n + 1) if self.keep else (None,):
            scores, ids = self.index.search(Q, k, oversample=oversample, **options)
            for i, (among, exclude) in enumerate(zip(*sets, strict=True)):
                rest = [name for name in self.ids if form == "exclude" or name in among]
                model = self._part([name for name in rest if form == "among" or name not in exclude])
                found = min(k, len(model.ids))
                if ids.shape != (2, min(k, n)) or (ids[i, found:] != ("" if self.names == "text" else -1)).any():
                    raise Fault(f"answers {ids[i].tolist()} among {len(model.ids)} rows, k = {k}")
                expected = model._exact(Q[i : i + 1]) if oversample else model._scores(Q[i : i + 1])
                own = scores[i : i + 1, :found], ids[i : i + 1, :found]
                model._compare(expected, *own, k, 0 if oversample else self.kind.rounding)

    def select_refused(self, rng: random.Random) -> None:
        """No row to compare, an unknown id, or a mask of another length."""
        wrong = [[*self._known(rng, 2), self._unknown()], np.ones(len(self.ids) + 1, bool)]
        options = rng.choice([{"among": []}, *({name: each} for name in ("among", "exclude") for each in wrong)])
        refused(lambda: self.index.search(self._draw_rows(rng, 1), 2, **options), next(iter(options)))

    def search_radius(self, rng: random.Random) -> None:
        """All rows within a radius, however few are sought at first: those of a search for every row."""
        Q, gone = self._draw_rows(rng, 3), self._known(rng, rng.choice((0, 1)))
        every, names = self.index.search(Q, len(self.ids) + 1, exclude=gone)
        sizes = np.sort(every[0][: len(self.ids) - len(gone)].astype(float))
        gaps = np.diff(sizes)
        r = float(sizes[gaps.argmax()] + gaps.max() / 2) if len(gaps) else 0.0
        with mock.patch("nearkin.index.query._DEPTH", 2):
            limits, scores, ids = self.index.search_radius(Q, r, exclude=gone)
        inside = names[0][: len(sizes)][every[0][: len(sizes)] * self._sign < r * self._sign]
        if limits[0] != 0 or len(limits) != 4 or limits[-1] != len(scores) or set(ids[: limits[1]]) != set(inside):
            raise Fault(f"{ids[: limits[1]].tolist()} within {r}, {inside.tolist()} expected")
        if not (scores * self._sign < r * self._sign).all():
            raise Fault(f"scores {scores[:4]} within {r}")

    def similar(self, rng: random.Random) -> None:
        """The neighbours of rows that are there, without these; what `vectors` and `in` know of them."""
        wanted = self._known(rng, 2) * rng.choice((1, 2))
        places = [self.ids.index(name) for name in wanted]
        if self._unknown() in self.index or not all(name in self.index for name in wanted):
            raise Fault(f"{wanted} are not in the index, or {self._unknown()} is")
        if not wanted:
            return
        if self.kind.metric == "hamming" and not self.keep:
            refused(lambda: self.index.vectors(wanted), "bits")
            rows = self.rows[places]
        else:
            rows = self.index.vectors(wanted)
        if self.keep and not np.array_equal(rows, self.rows[places]):
            raise Fault("vectors are not the kept ones")
        scores, ids = self.index.similar(wanted, 3)
        for i, name in enumerate(wanted):
            model = self._part([other for other in self.ids if other != name])
            found = min(3, len(model.ids))
            own = scores[i : i + 1, :found], ids[i : i + 1, :found]
            model._compare(model._scores(rows[i : i + 1]), *own, 3, self.kind.rounding)

    def _part(self, ids: list[Any]) -> "Machine":
        """The model of some of the rows."""
        part = copy.copy(self)
        part.ids, part.rows = ids, self.rows[[self.ids.index(name) for name in ids]]
        return part

    def _as_rows(self, ids: list[Any], rng: random.Random) -> Any:
        """As ids or as a mask."""
        mask = np.isin(np.arange(len(self.ids)), [self.ids.index(name) for name in ids])
        return mask if rng.random() < 0.5 else self._as_given(ids, rng)

    @property
    def _sign(self) -> int:
        return 1 if self.kind.metric in ("l2", "hamming") else -1

    def save(self, rng: random.Random) -> None:
        """Save, over the folder of an earlier save too, and go on with the old index or the loaded one."""
        path = self.folder / "idx"
        if path.is_dir():
            mine = path / ".mine"
            mine.write_text("the user's own")
            refused(lambda: self.index.save(path, overwrite=True), ".mine")
            mine.unlink()
        self.index.save(path, overwrite=True)
        if rng.random() < 0.7:
            self.index = nk.Index.load(path)

    def merge(self, rng: random.Random) -> None:
        """Merge another index of the same codes; it is empty and usable afterwards."""
        other = nk.Index.empty(D, self.quantizer, self.kind.metric, n_probe=self.index.n_probe, norms=self.norms)
        X = self._draw_rows(rng, rng.randint(1, 6))
        other.add(X)
        if self.names != "counted" and not self.ids:
            return  # a merge would make it count its rows
        allowed = not self.keep and self.index.ids is None
        if not allowed:
            refused(lambda: self.index.merge(other), "merge")
            return
        if rng.random() < 0.3:
            other.save(self.folder / "other", overwrite=True)
            other = nk.Index.load(self.folder / "other")
        self.index.merge(other)
        if len(other) or other.search(X, 3)[1].shape != (len(X), 0):
            raise Fault("a merged index is not empty")
        other.add(X)
        if (len(other), other.search(X, 1)[1].min()) < (len(X), 0):
            raise Fault("a merged index cannot be used")
        other.save(self.folder / "other", overwrite=True)
        nk.Index.load(self.folder / "other")
        self.ids += range(self.next_id, self.next_id + len(X))
        self.next_id += len(X)
        self.rows = np.concatenate([self.rows, X])

    def copy(self, rng: random.Random) -> None:
        """Go on with a copy."""
        self.index = copy.deepcopy(self.index)

    def refit(self, rng: random.Random) -> None:
        """Fit the caller's quantizer on other rows: the index has its own."""
        if self.original is not None and hasattr(self.original, "partial_fit") and rng.random() < 0.5:
            self.original.partial_fit(self._draw_rows(rng, 64) * 3)
        elif self.original is not None and rng.random() < 0.3:
            self.original.fit(_TRAIN[::-1] * 3)

    def search(self, rng: random.Random) -> None:
        """Another k, more rows than there are too; every answer is compared with the model."""
        self.check(rng, rng.choice((1, 2, 5, len(self.ids) + 3)))

    # comparison with the model

    def check(self, rng: random.Random, k: int = 4) -> None:
        """Length, ids and answers are the model's."""
        if len(self.index) != len(self.ids):
            raise Fault(f"{len(self.index)} rows, {len(self.ids)} expected")
        Q = self._draw_rows(rng, 3)
        given = Q.copy()
        scores, ids = self.index.search(given, k)
        self._compare(self._scores(Q), scores, ids, k, self.kind.rounding)
        if self.keep and self.ids:
            scores, ids = self.index.search(given, k, oversample=len(self.ids) + 1)
            self._compare(self._exact(Q), scores, ids, k, 0.0)
        _spoil(given, scores, ids)

    def _compare(self, expected: np.ndarray, scores: np.ndarray, ids: np.ndarray, k: int, rounding: float) -> None:
        """Scores (q, k) belong to their ids within the rounding, none occurs twice, and none is missing."""
        k = min(k, len(self.ids))
        if ids.shape != (len(expected), k):
            raise Fault(f"answers of shape {ids.shape}, ({len(expected)}, {k}) expected")
        sign, place = self._sign, {name: i for i, name in enumerate(self.ids)}
        for row, found, names in zip(expected, scores, ids.tolist(), strict=True):
            if not set(names) <= set(place) or len(set(names)) < k:
                raise Fault(f"ids {names[:5]} are not {k} different ids of the index")
            slack = 1e-4 * (1 + np.abs(row).max(initial=0)) + rounding * _LONGEST
            own = row[[place[name] for name in names]]
            if not np.allclose(own, found, atol=slack, rtol=0):
                raise Fault(f"scores {found[:4]} where the model has {own[:4]}")
            if k and (sign * own > np.sort(sign * row)[:k].max() + 2 * slack).any():
                raise Fault(f"{names[:4]} are not the nearest")

    def _scores(self, Q: np.ndarray) -> np.ndarray:
        """Scores (q, n) of all rows by their codes."""
        metric = self.kind.metric
        if metric == "hamming":
            codes = (self.quantizer.encode(rows) if len(rows) else np.empty((0, 1)) for rows in (Q, self.rows))
            asked, own = (np.unpackbits(part.astype(np.uint8), axis=1) for part in codes)
            return (asked[:, None] != own[None]).sum(2).astype(np.float64) if len(self.rows) else np.empty((len(Q), 0))
        rows = _unit(self.rows) if metric == "cosine" and len(self.rows) else self.rows
        if self.quantizer is not None and len(rows):
            length = self._length(rows)
            if length is None and "sums" in self.kind.name:
                return self._scores_of_faiss(Q, rows)
            rows = np.asarray(self.quantizer.decode(self.quantizer.encode(rows)))
            if self.index.norms is not None:
                rows = self.index.norms.restored(rows, self.rows)
                Q = widened(Q, rows.shape[1])
        return self._compared(Q, rows)

    def _length(self, rows: np.ndarray) -> float | None:
        """The length of all rows (n, d) if the index knows one; Fault if it takes rows to have another."""
        norms, own = self.index.norms, np.linalg.norm(rows.astype(np.float64), axis=1)
        length = None if norms is None or norms.n_bytes else float(norms.levels[0])
        if length is not None and np.abs(own - length).max() > 0.02 * length:
            raise Fault(f"rows of lengths {own.min()} to {own.max()} are taken to have {length}")
        if length is None and "unit" in self.kind.name:
            raise Fault("all rows have length 1, and the index does not know it")
        return length

    def _scores_of_faiss(self, Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Scores (q, n) by a new FAISS index: codes of sums carry a term of their error, which `decode` leaves out."""
        new = self.quantizer.to_faiss("l2" if self.kind.metric == "l2" else "ip")
        self.quantizer.add_to(new, rows)
        if "lists" in self.kind.name:
            innermost(new).nprobe = LISTS
        asked = _unit(Q) if self.kind.metric == "cosine" else Q
        found, places = new.search(asked, len(rows))
        if "norms" in self.kind.name and self.kind.metric == "l2":  # FAISS leaves out what is the same for all rows
            found += (faiss.downcast_VectorTransform(new.chain.at(0)).apply(asked) ** 2).sum(1, keepdims=True)
        return np.take_along_axis(found, np.argsort(places, axis=1), axis=1)

    def _exact(self, Q: np.ndarray) -> np.ndarray:
        return self._compared(Q, _unit(self.rows) if self.kind.metric == "cosine" else self.rows)

    def _compared(self, Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        asked = (_unit(Q) if self.kind.metric == "cosine" else Q).astype(np.float64)
        if self.kind.metric in ("ip", "cosine"):
            return asked @ rows.T.astype(np.float64)
        return ((asked[:, None] - rows[None].astype(np.float64)) ** 2).sum(2)

    # arguments

    def _draw_rows(self, rng: random.Random, n: int) -> np.ndarray:
        """Rows like those of training, some of them equal to rows that are there."""
        X = np.random.default_rng(rng.getrandbits(32)).normal(size=(n, D)).astype(np.float32)
        X = _unit(X) if "unit" in self.kind.name else X
        if len(self.rows) and rng.random() < 0.2:
            X[0] = self.rows[rng.randrange(len(self.rows))]
        return X

    def _new_ids(self, n: int) -> list[Any] | None:
        if self.names == "counted":
            return None
        self.fresh += n
        numbers = range(self.fresh - n, self.fresh)
        return [10**6 - 7 * i for i in numbers] if self.names == "integers" else [f"rów {i}" for i in numbers]

    def _known(self, rng: random.Random, n: int) -> list[Any]:
        return rng.sample(self.ids, min(n, len(self.ids)))

    def _unknown(self) -> object:
        return "nobody" if self.names == "text" else -5

    @staticmethod
    def _as_given(ids: Sequence[Any], rng: random.Random) -> Any:
        """As a list or as an array."""
        return list(ids) if rng.random() < 0.5 else np.array(ids)


OPERATIONS = (
    *("add", "add", "add", "remove", "update", "save", "merge", "copy", "refit", "search"),
    *("upsert", "select", "search_radius", "similar"),
    *("add_refused", "remove_refused", "update_refused", "upsert_refused", "select_refused"),
)


def play(kind: int, names: str, keep: bool, operations: Sequence[Operation], folder: Path) -> None:
    """Run a sequence on an index of that kind; Fault where it differs from the model."""
    folder.mkdir()
    try:
        machine = Machine(kind, names, keep, folder)
        for step, (name, seed) in enumerate(operations):
            rng = random.Random(seed)
            try:
                getattr(machine, name)(rng)
                machine.check(rng)
            except Fault as fault:
                raise Fault(f"{machine.kind.name}, {names}, step {step} ({name}): {fault}") from None
    finally:
        shutil.rmtree(folder)


def case(number: int, seed: int, folder: Path) -> str:
    """One sequence of the campaign."""
    rng = random.Random(seed * 1_000_003 + number)
    operations = [(rng.choice(OPERATIONS), rng.getrandbits(32)) for _ in range(STEPS)]
    play(number % len(KINDS), rng.choice(NAMES), rng.random() < 0.3, operations, folder / f"sequence-{number}")
    return "same"
