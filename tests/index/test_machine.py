"""Every kind of index beside a plain model, after each step of sequences that hypothesis draws and shrinks.

The model is a dict of ids and rows, which it decodes by the quantizer and compares with NumPy. Every array that goes
into a call, or comes out of one, is overwritten afterwards: the index must keep its own.
"""

import copy
import pickle
import random
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.base import clone

import nearkin as nk
from nearkin._faiss import innermost
from nearkin.data import open_vectors
from nearkin.index.searching import normalised
from nearkin.linalg.norms import POWER, Norms
from nearkin.quantization import AxisQuantizer, ProductResidualQuantizer, ResidualQuantizer, ScalarQuantizer

D, LISTS = 8, 3
TRAIN = np.random.default_rng(0).normal(size=(300, D)).astype(np.float32)
SEEDS = st.integers(0, 2**32 - 1).map(random.Random)
with_rows = precondition(lambda machine: machine.rows)
FEW: dict[str, Any] = {"max_iter": 2, "random_state": 0}
SUMS: dict[str, Any] = {"beam_size": 2, **FEW}
ROUNDED = 0.1  # by which float32 may round a score at the norm of a byte
MADE: dict[str, Any] = {
    "exact": None,
    "product": nk.ProductQuantizer(4, 32, **FEW),
    "4 bits": nk.ProductQuantizer(4, 16, **FEW),
    "lists": nk.ProductQuantizer(4, 32, n_lists=LISTS, **FEW),
    "4 bits in lists": nk.ProductQuantizer(4, 16, n_lists=LISTS, **FEW),
    "sums": ResidualQuantizer(4, 32, **SUMS),
    "axes": AxisQuantizer(4),
    "sums in lists": ResidualQuantizer(4, 32, n_lists=LISTS, **SUMS),
    "product sums": ProductResidualQuantizer(2, 2, 32, **FEW),
    **{f"{bits} bits a column": ScalarQuantizer(bits) for bits in (4, 8, 16)},
    "bits": nk.RandomHyperplanes(16, random_state=0),
    "learned bits": nk.ITQ(8, random_state=0),
}


class Kind(NamedTuple):
    """How an index is made, and the norms of its rows: "any", "one", or "byte" for a byte of them with each code."""

    made: str
    metric: str
    norms: str = "any"


KINDS = [
    *(Kind(*of) for of in product([*MADE][:7], ("l2", "ip", "cosine"))),
    *(Kind(made, "l2") for made in [*MADE][7:8] + [*MADE][9:12]),
    *(Kind(made, "ip") for made in ("sums", "product sums")),
    *(Kind(made, "hamming") for made in [*MADE][12:]),
    *(Kind(made, "l2", "one") for made in ("product", "lists", "4 bits in lists", "sums in lists", "axes")),
    *(Kind(made, "l2", "byte") for made in ("product", "sums", "axes")),
    *(Kind(made, "ip", "byte") for made in ("product", "4 bits in lists", "product sums")),
]


@cache
def fitted(made: str, unit: bool) -> Any:
    quantizer = MADE[made]
    return None if quantizer is None else clone(quantizer).fit(normalised(TRAIN) if unit else TRAIN)


def spoil(*arrays: object) -> None:
    """Overwrite the caller's arrays, as a reused buffer is."""
    for array in arrays:
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = "spoiled" if array.dtype.kind == "U" else -7


class Machine(RuleBasedStateMachine):
    kind: Kind

    @initialize(names=st.sampled_from(["counted", "integers", "text"]), keep=st.booleans(), rng=SEEDS)
    def begin(self, names: str, keep: bool, rng: random.Random) -> None:
        made, metric, norms = self.kind
        self.quantizer = fitted(made, norms == "one" or metric == "cosine")
        self.original = copy.deepcopy(self.quantizer)
        self.options: dict[str, Any] = {"norms": Norms.learned(TRAIN) if norms == "byte" else None}
        self.options["n_probe"] = LISTS if "lists" in made else None
        self.index = nk.Index.empty(D, self.original, metric, keep_vectors=keep, **self.options)
        self.rows: dict[Any, np.ndarray] = {}
        self.names, self.keep, self.next_id, self.fresh, self.error = names, keep, 0, 0, 0.0
        self.sign = 1 if metric in ("l2", "hamming") else -1
        self.temporary = TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.add(rng, 9)

    def teardown(self) -> None:
        if hasattr(self, "temporary"):
            self.temporary.cleanup()

    # ---- changes

    @rule(rng=SEEDS, n=st.integers(1, 9))
    def add(self, rng: random.Random, n: int) -> None:
        X, ids = self.some_rows(rng, n), self.new_ids(n)
        given, names = self.as_rows(X, rng), None if ids is None else self.as_ids(ids, rng)
        self.index.add(given, names)
        spoil(given, names)
        self.put(range(self.next_id, self.next_id + n) if ids is None else ids, X)
        self.next_id += n

    @with_rows
    @rule(rng=SEEDS, n=st.integers(0, 6), every=st.sampled_from([False] * 9 + [True]))
    def remove(self, rng: random.Random, n: int, every: bool) -> None:
        self.index.remove([self.unknown()], unknown="drop").upsert([], [])
        gone: Any = [*self.rows] if every else self.known(rng, n)
        given = self.as_ids(gone, rng)
        self.index.remove(given)
        spoil(given)
        for name in gone:
            del self.rows[name]

    @with_rows
    @rule(rng=SEEDS, n=st.integers(0, 5), way=st.sampled_from(["update", "upsert"]))
    def replace(self, rng: random.Random, n: int, way: str) -> None:
        """Replaced rows move to the end; an index that counts its rows takes known ids only."""
        names = self.known(rng, n) + ((self.new_ids(3) or []) if way == "upsert" else [])
        rng.shuffle(names)
        X = self.some_rows(rng, len(names))
        given, wanted = self.as_rows(X, rng), self.as_ids(names, rng)
        if way == "update":
            self.index.update(wanted, given)
        else:
            self.index.upsert(given, wanted)
        spoil(given, wanted)
        self.put(names, X)

    @rule(way=st.sampled_from(["load", "keep", "copy", "deep copy", "pickle"]))
    def go_on_with(self, way: str) -> None:
        if way in ("load", "keep"):
            self.index.save(self.folder / "idx", overwrite=True)
        ways = {
            "load": lambda index: nk.Index.load(self.folder / "idx"),
            "keep": lambda index: index,
            "copy": copy.copy,
            "deep copy": copy.deepcopy,
            "pickle": lambda index: pickle.loads(pickle.dumps(index)),
        }
        before, self.index = self.index, ways[way](self.index)
        if way != "keep" and len(before):
            before.remove(before.row_ids[:1])  # which is nothing to the other

    @rule(rng=SEEDS, n=st.integers(1, 6))
    def merge(self, rng: random.Random, n: int) -> None:
        """The other is empty and usable afterwards."""
        other, X = nk.Index.empty(D, self.quantizer, self.kind.metric, **self.options), self.some_rows(rng, n)
        other.add(X)
        if self.keep or self.names != "counted" or self.index.ids is not None:
            if self.rows:
                with pytest.raises(ValueError, match="merge"):
                    self.index.merge(other)
            return
        self.index.merge(other)
        assert (len(other), other.search(X, 3)[1].shape) == (0, (n, 0))
        assert other.add(X).search(X, 1)[1].min() >= 0
        self.put(range(self.next_id, self.next_id + n), X)
        self.next_id += n

    @rule()
    def fit_the_callers_quantizer_again(self) -> None:
        """The index has its own."""
        if self.original is not None:
            self.original.fit(TRAIN[::-1] * 3)

    @rule(rng=SEEDS)
    def refused(self, rng: random.Random) -> None:
        """What is refused changes nothing, as the next comparison shows."""
        X, new, known = self.some_rows(rng, 2), self.new_ids(2), self.known(rng, 1)
        other, alien = [*known, self.unknown()], ["five", "six"] if self.names == "integers" else [5, 6]
        calls = [
            lambda: self.index.add(X * np.nan, new),
            lambda: self.index.remove(other),
            lambda: self.index.update(other, self.some_rows(rng, len(other))),
            lambda: self.index.upsert(X[:1], [*(new or [0]), *(new or [0])]),
        ]
        if known:
            calls += [
                lambda: self.index.update([*known, *known], X),
                lambda: self.index.add(X, alien),
                lambda: self.index.add(X, [*known, *(new or ["a"])[:1]]),
                lambda: self.index.upsert(X, alien if self.names != "counted" else [*known, 10**9]),
            ]
        for call in calls:
            with pytest.raises((ValueError, TypeError)):
                call()

    # ---- answers

    @invariant()
    def answers_are_those_of_the_model(self) -> None:
        assert len(self.index) == len(self.rows)
        assert self.index.row_ids.tolist() == [*self.rows]
        np.testing.assert_allclose(self.index.errors[:, 1], [0, self.error], rtol=1e-4)
        rng = random.Random(len(self.rows))
        Q, k = self.some_rows(rng, 3), rng.choice([1, 2, 5, len(self.rows) + 3])
        given = Q.copy()
        scores, ids = self.index.search(given, k)
        self.compare(self.scores(Q, [*self.rows]), [*self.rows], scores, ids, k)
        if self.keep and self.rows:
            scores, ids = self.index.search(given, k, oversample=len(self.rows) + 1)
            self.compare(self.exact(Q, [*self.rows]), [*self.rows], scores, ids, k, by_codes=False)
        spoil(given, scores, ids)

    @with_rows
    @rule(rng=SEEDS, form=st.sampled_from(["among", "exclude", "both"]), alike=st.booleans())
    def select(self, rng: random.Random, form: str, alike: bool) -> None:
        """Rows by ids or masks, for all queries or for each; fewer than k leave places without an answer."""
        n, Q = len(self.rows), self.some_rows(rng, 2)
        k, sizes = rng.choice([1, 4, n]), [0, 1, 3, -(-n // 2), n]
        sets = {of: [self.known(rng, rng.choice(sizes[of == "among" :])) for _ in Q] for of in ("among", "exclude")}
        sets = {of: [each[0]] * 2 if alike else each for of, each in sets.items() if form in (of, "both")}
        given = {of: [self.as_set(one, rng) for one in each] for of, each in sets.items()}
        options: dict[str, Any] = {of: each[0] if alike else each for of, each in given.items()}
        for oversample in (None, n + 1) if self.keep else (None,):
            scores, ids = self.index.search(Q, k, oversample=oversample, **options)
            assert ids.shape == (2, min(k, n))
            for i in range(2):
                among, exclude = sets.get("among", [[*self.rows]] * 2)[i], sets.get("exclude", [[]] * 2)[i]
                left = [name for name in self.rows if name in among and name not in exclude]
                found = min(k, len(left))
                assert (ids[i, found:] == ("" if self.names == "text" else -1)).all()
                model = (self.exact if oversample else self.scores)(Q[i : i + 1], left)
                own = scores[i : i + 1, :found], ids[i : i + 1, :found]
                self.compare(model, left, *own, k, by_codes=oversample is None)

    @with_rows
    @rule(rng=SEEDS, n=st.integers(0, 1))
    def search_radius(self, rng: random.Random, n: int) -> None:
        """All rows within a radius, however few are sought at first: those of a search for every row."""
        Q, gone = self.some_rows(rng, 3), self.known(rng, n)
        every, names = (of[0, : len(self.rows) - n] for of in self.index.search(Q, len(self.rows) + 1, exclude=gone))
        gaps = np.diff(every.astype(float))
        r = float(every[np.abs(gaps).argmax()] + gaps[np.abs(gaps).argmax()] / 2) if len(gaps) else 0.0
        with mock.patch("nearkin.index.searching._DEPTH", 2):
            limits, scores, ids = self.index.search_radius(Q, r, exclude=gone)
        assert set(ids[: limits[1]]) == set(names[every * self.sign < r * self.sign])
        assert (len(limits), limits[-1]) == (4, len(scores))
        assert (scores * self.sign < r * self.sign).all()

    @with_rows
    @rule(rng=SEEDS)
    def similar(self, rng: random.Random) -> None:
        """The neighbours of rows that are there, without these; what `vectors` and `in` know of them."""
        wanted = self.known(rng, 2) * 2
        assert self.unknown() not in self.index
        assert all(name in self.index for name in wanted)
        rows = np.stack([self.rows[name] for name in wanted])
        if self.keep:
            np.testing.assert_array_equal(self.index.vectors(wanted), rows)
        elif self.kind.metric == "hamming":
            with pytest.raises(ValueError, match="bits"):
                self.index.vectors(wanted)
        else:
            rows = self.index.vectors(wanted)
        scores, ids = self.index.similar(wanted, 3)
        for i, name in enumerate(wanted):
            left = [other for other in self.rows if other != name]
            own = scores[i : i + 1, : len(left)], ids[i : i + 1, : len(left)]
            self.compare(self.scores(rows[i : i + 1], left), left, *own, 3)

    # ---- the model

    def put(self, ids: Sequence[Any], X: np.ndarray) -> None:
        for name, row in zip(ids, X, strict=True):
            self.rows.pop(name, None)
            self.rows[name] = row
        if len(X) and self.quantizer is not None and self.kind.metric != "hamming":
            X = normalised(X) if self.kind.metric == "cosine" else X
            self.error += np.linalg.norm(X - self.quantizer.decode(self.quantizer.encode(X)), axis=1).sum()

    def compare(
        self, model: np.ndarray, names: list[Any], scores: np.ndarray, ids: np.ndarray, k: int, by_codes: bool = True
    ) -> None:
        """Scores (q, k) are the model's (q, n) of their ids within the rounding, none occurs twice, none is missing."""
        k, place = min(k, len(names)), {name: i for i, name in enumerate(names)}
        assert ids.shape == (len(model), k)
        for row, found, own in zip(model, scores, ids.tolist(), strict=True):
            assert len({*own} & {*names}) == k, f"{own} are not {k} different ids of the index"
            slack = 1e-4 * (1 + np.abs(row).max(initial=0)) + (ROUNDED if by_codes and self.kind.norms == "byte" else 0)
            expected = row[[place[name] for name in own]]
            np.testing.assert_allclose(found, expected, atol=slack, rtol=0)
            assert (self.sign * expected <= np.sort(self.sign * row)[:k].max(initial=-np.inf) + 2 * slack).all()

    def stacked(self, names: list[Any]) -> np.ndarray:
        rows = np.stack([self.rows[name] for name in names]) if names else np.empty((0, D), np.float32)
        return normalised(rows) if self.kind.metric == "cosine" and names else rows

    def exact(self, Q: np.ndarray, names: list[Any]) -> np.ndarray:
        return self.compared(normalised(Q) if self.kind.metric == "cosine" else Q, self.stacked(names))

    def compared(self, Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
        Q, rows = Q.astype(np.float64), rows.astype(np.float64)
        return Q @ rows.T if self.sign < 0 else np.square(Q[:, None] - rows).sum(axis=2)

    def scores(self, Q: np.ndarray, names: list[Any]) -> np.ndarray:
        """Of all rows by their codes."""
        if self.quantizer is None or not names:
            return self.exact(Q, names)
        codes = self.quantizer.encode(self.stacked(names))
        if self.kind.metric == "hamming":
            return np.bitwise_count(self.quantizer.encode(Q)[:, None] ^ codes).sum(axis=2).astype(float)
        Q, norms = normalised(Q) if self.kind.metric == "cosine" else Q, self.index.norms
        one = self.kind.norms == "one" or self.kind.metric == "cosine"
        assert one <= (norms is not None), "all rows have one norm, and the index does not know it"
        if norms is not None:
            assert norms.n_bytes or one, "rows of several norms are taken to have one"
            return self.compared(np.pad(Q, ((0, 0), (0, 1))), self.at_norms(codes, self.stacked(names)))
        if hasattr(self.quantizer, "smoothing"):  # codes of sums carry a term of their error, which `decode` leaves out
            new = self.quantizer.to_faiss("l2" if self.sign > 0 else "ip")
            self.quantizer.add_to(new, self.stacked(names))
            if "lists" in self.kind.made:
                innermost(new).nprobe = LISTS
            found, places = new.search(Q, len(names))
            return np.take_along_axis(found, np.argsort(places, axis=1), axis=1)
        return self.compared(Q, self.quantizer.decode(codes))

    def at_norms(self, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Rows (n, d + 1) by their definition: decoded, lengthened towards the nearest level of |x - centre|, and the
        rest of it in a column more."""
        norms: Any = self.index.norms
        centre = norms.centre.astype(np.float64)
        centred, true = self.quantizer.decode(codes) - centre, np.linalg.norm(rows - centre, axis=1)
        wanted = norms.levels[np.abs(norms.levels - true[:, None]).argmin(axis=1)].astype(np.float64)
        centred *= ((wanted / np.linalg.norm(centred, axis=1)) ** (POWER if norms.n_bytes else 1))[:, None]
        rest = np.maximum(wanted**2 - np.square(centred).sum(axis=1), 0)
        return np.column_stack([centre + centred, np.sqrt(rest)])

    # ---- arguments

    def some_rows(self, rng: random.Random, n: int) -> np.ndarray:
        """Rows like those of training, now and then one that is there."""
        X = np.random.default_rng(rng.randrange(2**32)).normal(size=(n, D)).astype(np.float32)
        X = normalised(X) if self.kind.norms == "one" else X
        if n and self.rows and rng.randrange(5) == 0:
            X[0] = self.rows[rng.choice([*self.rows])]
        return X

    def as_rows(self, X: np.ndarray, rng: random.Random) -> Any:
        """As an array or from a file."""
        if len(X) and rng.randrange(4) == 0:
            np.save(self.folder / "X.npy", X)
            return open_vectors(self.folder / "X.npy")
        return X.copy()

    def as_ids(self, ids: Sequence[Any], rng: random.Random) -> Any:
        return list(ids) if rng.randrange(2) or not ids else np.array(ids)

    def as_set(self, ids: list[Any], rng: random.Random) -> Any:
        return np.array([name in ids for name in self.rows]) if rng.randrange(2) else self.as_ids(ids, rng)

    def new_ids(self, n: int) -> list[Any] | None:
        if self.names == "counted":
            return None
        self.fresh += n
        numbers = range(self.fresh - n, self.fresh)
        return [3 - 7 * i for i in numbers] if self.names == "integers" else [f"rów {i}" for i in numbers]

    def known(self, rng: random.Random, n: int) -> list[Any]:
        return rng.sample([*self.rows], min(n, len(self.rows)))

    def unknown(self) -> object:
        return "nobody" if self.names == "text" else -5


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
@pytest.mark.filterwarnings("ignore:.*Index.empty")
def test_an_index_is_its_model_after_every_step(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearkin.index.index._CHUNK", 4)
    few = settings(
        max_examples=5,
        stateful_step_count=10,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[*HealthCheck],
    )
    run_state_machine_as_test(type("OfKind", (Machine,), {"kind": kind}), settings=few)
