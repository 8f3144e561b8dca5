"""The protocol of published tables: training and validation pairs are fitted, test pairs judged, fitted ones masked.

    python -m benchmarks two_tower public --sets gowalla --ways "softmax on cosines, in batch, logQ" --again

The powers (.25 and .2) were found while looking at test pairs; validation pairs prefer .25 and .3. The default chooses
its loss on a tenth of the fitted pairs. The temperatures of `CosineSoftmax` were chosen on validation pairs (0.08 to
0.3). Every rival has its settings chosen by NDCG@20 on a tenth of the fitted pairs, by 3,000 lefts, and is then fitted
on all of them; its seconds are those of the last fit. With `--again` rivals keep the settings of their stored rows.
LightGCN has as many seconds as `--seconds` gives it, and settings for gowalla's size.
"""

import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.jobs import Job, Row, command
from benchmarks.options import RESULTS, peer_python
from benchmarks.table import Results
from benchmarks.two_tower.light_gcn import light_gcn
from benchmarks.two_tower.linear_rivals import MOST as MOST_OF_EASE
from benchmarks.two_tower.linear_rivals import chosen_ridge, ease, graph_filter, of_neighbours
from benchmarks.two_tower.peers import fit_peer, with_implicit
from benchmarks.two_tower.rivals import RIVALS, Epochs, Setting, chosen, fit_rival, judged_by
from nearkin.data import Parts
from nearkin.embedding import AllPairs, CosineSoftmax, item_knn, popularity

DEPTH = 20
EPOCHS = {"ml100k": Epochs((20, 50), (100, 200))}
MOST_EPOCHS = Epochs((10,), (25, 50, 100))
QUICK_EPOCHS = Epochs((2,), ())
FEW = 500  # lefts of a quick pass
LIGHT_GCN = (0.02, 262_144)  # rate and pairs of a batch, which validation pairs chose; its paper has .001 and 2,048
POWERS = AllPairs(weight_power=0.25, cost_power=0.2)
LISTS: dict[str, Callable] = {
    "popularity": lambda pairs, k: popularity(pairs, k)[1],
    "item-kNN": lambda pairs, k: item_knn(pairs, k)[1],
    "graph filter, powers 1/2": graph_filter,
    "graph filter, powers 0.3": lambda pairs, k: graph_filter(pairs, k, powers=(0.3, 0.3)),
}
TEMPERATURES = {  # by the power of the bias and the imputed share
    "gowalla": {(0.5, 0.0): 0.12, (0.0, 0.0): 0.12, (0.5, 0.3): 0.1},
    "ml100k": {(0.5, 0.0): 0.3, (0.0, 0.0): 0.2, (0.5, 0.3): 0.3},
}
TRIED = (0.08, 0.12, 0.16, 0.2, 0.3)
SOFTMAXES: dict[str, tuple[int, dict[str, float]]] = {
    "CosineSoftmax, no bias, k = 64": (64, {"bias_power": 0.0}),
    "CosineSoftmax, k = 64": (64, {}),
    "CosineSoftmax, imputed 0.3, k = 64": (64, {"imputed": 0.3}),
    "CosineSoftmax, k = 128": (128, {}),
}
FITS = {
    "the default, k = 64": (64, "auto"),
    "all pairs, k = 64": (64, "all-pairs"),
    "all pairs with powers, k = 64": (64, POWERS),
    "all pairs, k = 256": (256, "all-pairs"),
    "all pairs with powers, k = 256": (256, POWERS),
}


@dataclass(frozen=True)
class Found:
    """What a way gives for one seed: lists of rights (m, DEPTH), or tables P and Q; CPU seconds; settings chosen."""

    seconds: float
    lists: np.ndarray | None = None
    tables: tuple[np.ndarray, np.ndarray] | None = None
    settings: Any = None

    def judged(self, parts: Parts) -> Row:
        if self.tables is None:
            metrics = nk.metrics.list_metrics(self.lists, parts.test, k=DEPTH)
        else:
            metrics = nk.metrics.ranking_metrics(*self.tables, parts.test, seen=parts.train, k=DEPTH)
        return {name: metrics[name] for name in ("recall@20", "ndcg@20")} | {"seconds": self.seconds}


Way = Callable[[Parts, int], Found]


def read_public(name: str, folder: Path, seed: int, lefts: int | None = None) -> Parts:
    """NAME.npz, or NAME/train.txt and test.txt as LightGCN has them, by their split; ml100k with a random tenth.

    `lefts` are so many as are kept, the first ones, with the rights that they have; default all.
    """
    if (folder / name / "train.txt").exists():
        pairs = _read_lists(folder / name)
    elif name == "yelp2018":
        stored = np.load(folder / f"{name}.npz")
        pairs = nk.Interactions.from_pairs(stored["user"], stored["item"], split=2 * stored["test"].astype(int))
    else:
        pairs = nk.read_interactions(folder / f"{name}.npz", **({"min_weight": 4} if name == "ml100k" else {}))
    if lefts is not None:
        few = pairs.select(pairs.rows < lefts)
        pairs = nk.Interactions.from_pairs(few.rows, few.indices, split=few.split)
    if name == "ml100k":
        return nk.data.split_random(replace(pairs, split=None), valid=0, test=0.1, random_state=seed)
    split = np.asarray(pairs.split)
    return nk.data.split_given(replace(pairs, split=split * (split != 1)))  # validation pairs are fitted


def _read_lists(folder: Path) -> nk.Interactions:
    """The pairs of train.txt and test.txt, whose lines are a left and its rights: "0 17 4 301"."""
    entries = []
    for split, name in ((0, "train.txt"), (2, "test.txt")):
        for line in (folder / name).read_text().splitlines():
            left, *rights = map(int, line.split() or ["-1"])
            entries += [(left, right, split) for right in rights]
    left, right, split = np.array(entries).T
    return nk.Interactions.from_pairs(left, right, split=split)


@dataclass(frozen=True)
class Setup:
    """What is run: a set by its name, and how."""

    name: str
    folder: Path
    seconds: float = 0.0  # of LightGCN
    python: Path | None = None  # with implicit
    known: dict[str, Any] = field(default_factory=dict)  # settings of rows measured before, which their rivals keep
    quick: bool = False  # few lefts and epochs, to see that everything runs

    def read(self, seed: int) -> Parts:
        return read_public(self.name, self.folder, seed, FEW if self.quick else None)

    @cached_property
    def inner(self) -> Parts:
        """The fitted pairs of the first seed, a tenth of them to choose by."""
        return nk.data.split_random(self.read(0).train, valid=0.1, test=0, random_state=0)

    def ways(self) -> dict[str, Way]:
        """The rows of the table; what a rival chooses, it chooses once, for the first seed."""
        epochs = QUICK_EPOCHS if self.quick else EPOCHS.get(self.name, MOST_EPOCHS)
        found: dict[str, Way] = {label: partial(listed, lists) for label, lists in LISTS.items()}
        found |= {label: partial(fitted, *setting) for label, setting in FITS.items()}
        for label, (k, options) in SOFTMAXES.items():
            found[label] = _softmax(self, k, options)
        found["EASE, dense or sparse"] = ease_way(self, self.known.get("EASE, dense or sparse"))
        for label in RIVALS:
            found[label] = _sampled(self, label, epochs, self.known.get(label))
        for method in ("als", "bpr") if self.python else ():
            found[f"implicit {method}"] = peer_way(self, method, self.known.get(f"implicit {method}"))
        return found | ({"LightGCN": partial(_light_gcn, self.seconds)} if self.seconds else {})

    def measured(self, way: Way, seeds: int) -> Row:
        """Means over the seeds, and the settings of the first."""
        runs, settings = list[Row](), None
        for seed in range(seeds):
            parts = self.read(seed)
            found = way(parts, seed)
            settings = found.settings if seed == 0 else settings
            runs.append(found.judged(parts))
        means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        spread = {"recall@20 std": float(np.std([run["recall@20"] for run in runs])), "seeds": seeds}
        return means | spread | ({} if settings is None else {"settings": settings})


def listed(lists: Callable, parts: Parts, _seed: int) -> Found:
    start = time.process_time()
    ranked = lists(parts.train, DEPTH)
    return Found(time.process_time() - start, lists=ranked)


def fitted(k: int, loss: Any, parts: Parts, seed: int) -> Found:
    start = time.process_time()
    model = nk.TwoTower(k, loss=loss, random_state=seed).fit(parts.train)
    seconds, chosen = time.process_time() - start, repr(model.loss_) if loss == "auto" else None
    return Found(seconds, tables=(model.left_embeddings_, model.right_embeddings_), settings=chosen)


def _softmax(setup: Setup, k: int, options: dict[str, float]) -> Way:
    """The temperature as it was chosen for the sets at hand, by the validation pairs for another one."""

    @cache
    def temperature() -> float:
        return known_temperature(setup.name, options) or _chosen_temperature(setup.inner, options)

    def way(parts: Parts, seed: int) -> Found:
        found = fitted(k, CosineSoftmax(temperature=temperature(), **options), parts, seed)
        return replace(found, settings={"temperature": temperature()})

    return way


def known_temperature(name: str, options: dict[str, float]) -> float | None:
    """The one that was chosen for a set with these options of `CosineSoftmax`; None for another set."""
    return TEMPERATURES.get(name, {}).get((options.get("bias_power", 0.5), options.get("imputed", 0.0)))


def _chosen_temperature(inner: Parts, options: dict[str, float]) -> float:
    """The one of largest NDCG@20 of the validation pairs of a few lefts, with 64 numbers a row."""
    check, judged = judged_by(inner), {}
    for temperature in TRIED:
        tables = fitted(64, CosineSoftmax(temperature=temperature, **options), inner, 0).tables
        judged[temperature] = 0.0 if tables is None else check(*tables)
    return max(judged, key=lambda temperature: judged[temperature])


def ease_way(setup: Setup, known: dict[str, Any] | None) -> Way:
    ridge = cache(lambda: known["ridge"] if known else chosen_ridge(setup.inner, DEPTH))

    def way(parts: Parts, seed: int) -> Found:
        fit = ease if parts.train.shape[1] <= MOST_OF_EASE else of_neighbours
        found = listed(partial(fit, ridge=ridge()), parts, seed)
        return replace(found, settings={"ridge": ridge(), "form": fit.__name__})

    return way


def _sampled(setup: Setup, label: str, epochs: Epochs, known: dict[str, Any] | None) -> Way:
    setting = cache(lambda: Setting(**known) if known else chosen(RIVALS[label], setup.inner, 64, epochs))

    def way(parts: Parts, seed: int) -> Found:
        P, Q, seconds = fit_rival(RIVALS[label], setting(), parts.train, 64, seed)
        return Found(seconds, tables=(P, Q), settings=asdict(setting()))

    return way


def peer_way(setup: Setup, method: str, known: list[float] | None) -> Way:
    python = setup.python
    assert python is not None
    settings = cache(lambda: known or fit_peer(python, method, setup.inner, 0)["settings"])
    return lambda parts, seed: Found(**fit_peer(python, method, parts, seed, settings()))


def _light_gcn(seconds: float, parts: Parts, seed: int) -> Found:
    """LightGCN for so long."""
    P, Q, used, epochs = light_gcn(parts.train, 64, *LIGHT_GCN, seed, seconds=seconds)
    settings = {"rate": LIGHT_GCN[0], "batch": LIGHT_GCN[1], "epochs": epochs}
    return Found(used, tables=(P, Q), settings=settings)


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    peer = with_implicit(peer_python(given.peers))
    for name in given.sets:
        stored = [row for row in Results(RESULTS).read("two_tower_public") or [] if row["set"] == name]
        known = {row["way"]: row["settings"] for row in stored if row.get("settings")} if given.again else {}
        seconds = min(given.seconds, 3.0) if given.quick else given.seconds
        setup = Setup(name, given.data, seconds, peer, known, given.quick)
        for label, way in setup.ways().items():
            if label.startswith(given.ways):
                work = partial(setup.measured, way, 1 if given.quick else given.seeds)
                yield "two_tower_public", Job({"set": name, "way": label}, work)


def main() -> None:
    command(__doc__, jobs, {}, sets=("gowalla", "ml100k", "yelp2018"), ways="", seeds=3, seconds=450.0, again=False)
