"""What is deployed: the past is fitted, the future ranked. Rivals beside the default after one cut in time for all.

    python -m benchmarks two_tower by_time

The latest tenth of the pairs is the test, of which users with a history count; the tenth before it chooses the rivals'
settings, and is then fitted too. Logs: ml100k (ratings from 4), lastfm2k (a user's first tag of an artist, by its day,
from user_taggedartists.dat of HetRec 2011), and two drawn here over 2,000 users and 1,500 items that appear one after
another and go out of fashion, one with users whose taste turns.
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

import nearkin as nk
from benchmarks.jobs import Job, command
from benchmarks.options import peer_python
from benchmarks.two_tower.peers import with_implicit
from benchmarks.two_tower.public import FITS, Setup, Way, ease_way, fitted, listed, peer_way
from nearkin.data import Parts
from nearkin.embedding import item_knn, popularity

TURNS = {"drawn log, tastes stay": 0.0, "drawn log, tastes turn": 1.5}  # angle by which a taste turns in all
M, N, EVENTS, K = 2000, 1500, 80_000, 12
AGE = 0.3  # in which an item's appeal falls by e, of the whole time


def drawn_log(turn: float, seed: int, events: int = EVENTS) -> nk.Interactions:
    """Users draw items that have appeared, by taste, popularity and age."""
    rng = np.random.default_rng(seed)
    now, later = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in rng.standard_normal((2, M, K)))
    Q, popular, born = rng.standard_normal((N, K)), 0.7 * rng.standard_normal(N), rng.uniform(-0.5, 1.0, N)
    users, times = rng.integers(0, M, events), np.sort(rng.random(events))
    items = np.empty(events, np.int64)
    for some in np.array_split(np.arange(events), max(1, events // 2000)):
        at, angle = times[some, None], turn * times[some, None]
        taste = np.cos(angle) * now[users[some]] + np.sin(angle) * later[users[some]]
        appeal = 1.5 * taste @ Q.T + popular - np.maximum(at - born, 0) / AGE
        items[some] = np.where(born <= at, appeal + rng.gumbel(size=appeal.shape), -np.inf).argmax(1)
    return nk.Interactions.from_pairs(users, items, timestamps=times, left_ids=np.arange(M), right_ids=np.arange(N))


@dataclass(frozen=True)
class OverTime(Setup):
    """A log by its name."""

    def log(self, seed: int) -> nk.Interactions:
        if self.name in TURNS:
            return drawn_log(TURNS[self.name], seed, EVENTS // 10 if self.quick else EVENTS)
        if self.name == "lastfm2k":
            table = np.loadtxt(self.folder / "user_taggedartists.dat", int, skiprows=1)
            table = table[table[:, 5] > 2004]  # some days are decades before the site
            pairs = nk.Interactions.from_pairs(*table.T[:2], timestamps=table[:, 3:] @ (1, 31, 372))
            return replace(pairs, weights=np.ones(len(pairs), np.float32))
        return nk.read_interactions(self.folder / f"{self.name}.npz", min_weight=4)

    def read(self, seed: int) -> Parts:
        parts = nk.data.split_by_time(self.log(seed), valid=0, test=0.1)
        known = np.diff(parts.train.indptr) > 0
        return Parts(parts.train, parts.valid, parts.test.select(known[parts.test.rows]))

    @cached_property
    def inner(self) -> Parts:
        """The first seed's pairs before the cut, the latest ninth of them to choose by."""
        return nk.data.split_by_time(self.read(0).train, valid=1 / 9, test=0)

    def ways(self) -> dict[str, Way]:
        return {
            "popularity": partial(listed, lambda pairs, k: popularity(pairs, k)[1]),
            "popularity in the last tenth": partial(listed, _lately_popular),
            "item-kNN": partial(listed, lambda pairs, k: item_knn(pairs, k)[1]),
            "EASE": ease_way(self, None),
            "the default, k = 64": partial(fitted, *FITS["the default, k = 64"]),
            **{f"implicit {method}": peer_way(self, method, None) for method in ("als", "bpr") if self.python},
        }


def _lately_popular(pairs: nk.Interactions, k: int) -> np.ndarray:
    """(m, k) items of the latest tenth by their counts, without each user's own."""
    late = nk.data.split_by_time(pairs, valid=0, test=0.1).test
    counts = np.bincount(late.indices, minlength=pairs.shape[1]).astype(np.float32)[:, None]
    return nk.metrics.ranking.recommend(np.ones((pairs.shape[0], 1), np.float32), counts, k, seen=pairs)[1]


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    for name in given.sets:
        setup = OverTime(name, given.data, python=with_implicit(peer_python(given.peers)), quick=given.quick)
        seeds = 1 if given.quick else given.seeds
        for label, way in setup.ways().items():
            if label.startswith(given.ways):
                yield "two_tower_by_time", Job({"set": name, "way": label}, partial(setup.measured, way, seeds))


def main() -> None:
    command(__doc__, jobs, {}, sets=("ml100k", "lastfm2k", *TURNS), ways="", seeds=3)
