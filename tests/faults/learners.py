"""Sequences of operations on two-tower models and ordinal embeddings, each compared with plain Python after every step.

A second model goes through the same operations and is saved and loaded after each: both must stay equal to the last
bit. The arrays that go into a call are overwritten afterwards: a model must keep its own.
"""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from nearkin.embedding import Adam, AllPairs, CosineSoftmax
from tests.faults.child import Fault, refused

STEPS = 8
_TOWERS: list[dict[str, Any]] = [
    {"loss": "all-pairs"},
    {"loss": AllPairs(weight_power=0.25, cost_power=0.2)},
    {"loss": CosineSoftmax(temperature=0.2)},
    {"loss": "all-pairs", "solver": Adam(learning_rate=0.05)},
    {"loss": "auto"},
]
_ORDINAL: list[dict[str, Any]] = [{"loss": loss} for loss in ("ste", "t-ste", "gnmds", "ckl", "soe")]
_ORDINAL += [{"loss": "ste", "solver": solver} for solver in ("svrg-sbb", "adagrad")]
KINDS = [*(("towers", options) for options in _TOWERS), *(("ordinal", options) for options in _ORDINAL)]


def _equal(name: str, one: object, other: object) -> None:
    if not np.array_equal(np.asarray(one), np.asarray(other), equal_nan=False):
        raise Fault(f"{name} differs after saving and loading")


class Towers:
    """A two-tower model and its pairs as a dict."""

    operations = ("learn", "learn_refused", "fold_in", "recommend")
    fitted = ("left_ids_", "right_ids_", "left_embeddings_", "right_embeddings_")

    def __init__(self, options: dict[str, Any], rng: random.Random) -> None:
        self.pairs: dict[tuple[str, int], float] = {}
        made = nk.TwoTower(3, random_state=0, **options)
        self.models = [made.fit(self._more(rng, 40))]

    def load(self, path: Path) -> Any:
        return nk.TwoTower.load(path)

    def _more(self, rng: random.Random, count: int) -> nk.Interactions:
        """More observations of old and new ids; the dict has them too."""
        left = [f"u{rng.randrange(12)}" for _ in range(count)]
        right = [rng.randrange(15) for _ in range(count)]
        weights = [rng.choice((1.0, 2.0)) for _ in range(count)]
        for pair, weight in zip(zip(left, right, strict=True), weights, strict=True):
            self.pairs[pair] = self.pairs.get(pair, 0.0) + weight
        return nk.Interactions.from_pairs(left, right, weights)

    def learn(self, rng: random.Random) -> None:
        state = rng.getstate()
        for model in self.models:
            rng.setstate(state)
            before = dict(self.pairs)
            pairs = self._more(rng, 6)
            model.partial_fit(pairs, max_iter=1)
            for array in (pairs.indices, pairs.weights, pairs.indptr):
                array[...] = 0
            after, self.pairs = self.pairs, before
        self.pairs = after

    def learn_refused(self, rng: random.Random) -> None:
        """Pairs whose ids are of another type, or no pairs, change nothing."""
        wrong = rng.choice(("pairs", nk.Interactions.from_pairs([1, 2], ["a", "b"]), None))
        for model in self.models:
            refused(lambda model=model: model.partial_fit(wrong))

    def fold_in(self, rng: random.Random) -> None:
        known = self.models[0].right_ids_.tolist()
        histories = [rng.sample(known, rng.randint(1, 4)) for _ in range(3)]
        together = self.models[0].embed_left(histories)
        alone = np.concatenate([self.models[0].embed_left([history]) for history in histories])
        if not np.allclose(together, alone, rtol=1e-4, atol=1e-5):
            raise Fault(f"a history alone is embedded elsewhere than among others, by {np.abs(together - alone).max()}")
        _equal("embed_left", together, self.models[-1].embed_left(histories))
        refused(lambda: self.models[0].embed_left([[10**6]]))

    def recommend(self, rng: random.Random) -> None:
        wanted = rng.sample(self.models[0].left_ids_.tolist(), 2)
        _, found = self.models[0].recommend(np.array(wanted), k=5)
        for left, row in zip(wanted, found.tolist(), strict=True):
            if seen := [right for right in row if (left, right) in self.pairs]:
                raise Fault(f"{left} is recommended {seen}, which it has")
        _equal("recommend", found, self.models[-1].recommend(np.array(wanted), k=5)[1])

    def check(self) -> None:
        for model in self.models:
            seen, lefts, rights = model.seen_, model.left_ids_.tolist(), model.right_ids_.tolist()
            rows = np.repeat(np.arange(len(lefts)), np.diff(seen.indptr)).tolist()
            entries = zip(rows, seen.indices.tolist(), seen.weights.tolist(), strict=True)
            if {(lefts[i], rights[j]): weight for i, j, weight in entries} != self.pairs:
                raise Fault("the pairs that the model has seen are not those of the calls")
            if not (np.isfinite(model.left_embeddings_).all() and np.isfinite(model.right_embeddings_).all()):
                raise Fault("an embedding is not finite")


class Ordinal:
    """An ordinal embedding and its answers as a list."""

    operations = ("learn", "learn_refused", "judge")
    fitted = ("objects_", "embedding_")

    def __init__(self, options: dict[str, Any], rng: random.Random) -> None:
        self.answers: list[tuple[int, ...]] = []
        self.places = np.random.default_rng(rng.getrandbits(32)).normal(size=(12, 2))
        made = nk.OrdinalEmbedding(2, random_state=0, max_iter=5, n_init=1, **options)
        self.models = [made.fit(self._more(rng, 60))]

    def load(self, path: Path) -> Any:
        return nk.OrdinalEmbedding.load(path)

    def _more(self, rng: random.Random, count: int) -> np.ndarray:
        """More answers (count, 3); the list has them too."""
        rows = []
        for _ in range(count):
            i, j, k = rng.sample(range(12), 3)
            near, far = (np.square(self.places[i] - self.places[other]).sum() for other in (j, k))
            rows.append((i, j, k) if near < far else (i, k, j))
        self.answers += rows
        return np.array(rows)

    def learn(self, rng: random.Random) -> None:
        more = self._more(rng, 5)
        for model in self.models:
            given = more.copy()
            model.partial_fit(given)
            given[...] = 0

    def learn_refused(self, rng: random.Random) -> None:
        """Answers that repeat an object, are negative or not of three columns change nothing."""
        wrong = rng.choice(([[1, 1, 2]], [[-1, 0, 2]], [[0.5, 1, 2]], [[0, 1]]))
        for model in self.models:
            refused(lambda model=model: model.partial_fit(np.array(wrong)))

    def judge(self, rng: random.Random) -> None:
        asked = np.array([rng.sample(range(12), 3) for _ in range(5)])
        known = np.isin(asked, self.models[0].objects_).all(axis=1)
        if known.any():
            _equal("predict", self.models[0].predict(asked[known]), self.models[-1].predict(asked[known]))
        queries = [model.next_queries(3, random_state=1) for model in self.models]
        _equal("next_queries", queries[0], queries[-1])

    def check(self) -> None:
        for model in self.models:
            objects, held = model.objects_.tolist(), model.comparisons_.indices.tolist()
            if sorted(tuple(objects[i] for i in row) for row in held) != sorted(self.answers):
                raise Fault("the answers that the model has are not those of the calls")
            if not np.isfinite(model.embedding_).all():
                raise Fault("an embedding is not finite")


def play(kind: int, first: int, operations: Sequence[int], folder: Path) -> None:
    """Run a sequence on a model of that kind; Fault where it differs from the plain one.

    `first` is the seed of the first data, and each of `operations` that of one operation and its arguments.
    """
    folder.mkdir()
    family, options = KINDS[kind]
    machine = {"towers": Towers, "ordinal": Ordinal}[family](options, random.Random(first))
    name = "fit"
    try:
        machine.models.append(machine.models[0])
        for step in range(len(operations) + 1):
            if step:
                rng = random.Random(operations[step - 1])
                name = rng.choice(machine.operations)
                getattr(machine, name)(rng)
            machine.models[1].save(folder / "model", overwrite=True)
            machine.models[1] = machine.load(folder / "model")
            machine.check()
            for attribute in machine.fitted:
                _equal(attribute, *(getattr(model, attribute) for model in machine.models))
    except Fault as fault:
        raise Fault(f"{family} {options}, step {step} ({name}): {fault}") from None
    finally:
        shutil.rmtree(folder)


def case(number: int, seed: int, folder: Path) -> str:
    """One sequence of the campaign."""
    rng = random.Random(seed * 1_000_003 + number)
    play(number % len(KINDS), rng.getrandbits(32), [rng.getrandbits(32) for _ in range(STEPS)], folder / f"{number}")
    return "same"
