"""The protocol of published tables: training and validation pairs are fitted, test pairs judged, fitted ones masked.

The powers (.25 and .2) were found while looking at test pairs; validation pairs prefer .25 and .3. The default chooses
its loss on a tenth of the fitted pairs. The temperatures of `CosineSoftmax` were chosen on validation pairs (0.08 to
0.3). Every rival has its settings chosen by NDCG@20 on a tenth of the fitted pairs, by 3,000 lefts, and is then fitted
on all of them; its seconds are those of the last fit. LightGCN has as many seconds as `--rivals` gives it, and settings
for gowalla's size.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.two_tower.choosing import Epochs, Setting, judged_by
from benchmarks.two_tower.light_gcn import light_gcn
from benchmarks.two_tower.linear_rivals import MOST as MOST_OF_EASE
from benchmarks.two_tower.linear_rivals import chosen_ridge, ease, graph_filter, of_neighbours
from benchmarks.two_tower.peers import fit_peer
from benchmarks.two_tower.rivals import RIVALS, chosen, fit_rival
from nearkin.data import Parts
from nearkin.embedding import AllPairs, CosineSoftmax, item_knn, popularity

DEPTH = 20
EPOCHS = {"ml100k": Epochs((20, 50), (100, 200))}
MOST_EPOCHS = Epochs((10,), (25, 50, 100))
QUICK_EPOCHS = Epochs((2,), ())
FEW = 500  # lefts of a quick pass
LIGHT_GCN = (0.02, 262_144)  # rate and pairs of a batch, which validation pairs chose; its paper has .001 and 2,048
POINTS = 16  # of LightGCN's curve
POWERS = AllPairs(weight_power=0.25, cost_power=0.2)
LISTS: dict[str, Callable] = {
    "popularity": lambda pairs, k: popularity(pairs, k)[1],
    "item-kNN, 100 neighbours": lambda pairs, k: item_knn(pairs, k)[1],
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


Way = Callable[[Parts, int], Found]
Rows = dict[str, dict[str, Any]]  # of the table, by their names
Keep = Callable[[Rows], None]


def read_public(name: str, folder: Path, seed: int, lefts: int | None = None) -> Parts:
    """NAME.npz, or NAME/train.txt and test.txt as LightGCN has them, by their split; ml100k with a random tenth.

    `lefts` are so many as are kept, the first ones, with the rights that they have; default all.
    """
    if (folder / name / "train.txt").exists():
        pairs = _read_lists(folder / name)
    else:
        pairs = nk.read_interactions(folder / f"{name}.npz", min_weight=4 if name == "ml100k" else None)
    if lefts is not None:
        few = pairs.select(pairs.rows < lefts)
        pairs = nk.Interactions.from_pairs(few.rows, few.indices, split=few.split)
    if name == "ml100k":
        return nk.data.split_random(replace(pairs, split=None), valid=0, test=0.1, random_state=seed)
    return nk.data.split_given(pairs, fit_validation=True)


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
    seeds: int = 3
    only: tuple[str, ...] = ("",)  # beginnings of the names of the ways
    seconds: float = 0.0  # of LightGCN
    python: Path | None = None  # with implicit
    known: Rows = field(default_factory=dict)  # rows measured before: a rival that is among them keeps its settings
    quick: bool = False  # few lefts and epochs, to see that everything runs

    def read(self, seed: int) -> Parts:
        return read_public(self.name, self.folder, seed, FEW if self.quick else None)

    def epochs(self) -> Epochs:
        return QUICK_EPOCHS if self.quick else EPOCHS.get(self.name, MOST_EPOCHS)

    def chosen(self, label: str) -> Any:
        """The settings of that row, None where there are none."""
        return self.known.get(label, {}).get("settings")


def public(setup: Setup, keep: Keep) -> None:
    """Every way that is asked for over the seeds; `keep` gets a way's means after each of its fits."""
    for label, way in _ways(setup):
        if not label.startswith(setup.only):
            continue
        runs: list[dict[str, Any]] = []
        for seed in range(setup.seeds):
            parts = setup.read(seed)
            runs.append(_judged(way(parts, seed), parts))
            print(setup.name, seed, label, runs[-1], flush=True)
            keep({label: _means(runs)})


def _judged(found: Found, parts: Parts) -> dict[str, Any]:
    if found.tables is None:
        metrics = nk.metrics.list_metrics(found.lists, parts.test, k=DEPTH)
    else:
        metrics = nk.metrics.ranking_metrics(*found.tables, parts.test, seen=parts.train, k=DEPTH)
    row = {name: metrics[name] for name in ("recall@20", "ndcg@20")} | {"seconds": found.seconds}
    return row | ({} if found.settings is None else {"settings": found.settings})


def _means(runs: list[dict[str, Any]]) -> dict[str, Any]:
    means = {name: float(np.mean([run[name] for run in runs])) for name in ("recall@20", "ndcg@20", "seconds")}
    spread = {"recall@20 std": float(np.std([run["recall@20"] for run in runs])), "seeds": len(runs)}
    return means | spread | ({"settings": runs[0]["settings"]} if "settings" in runs[0] else {})


def _ways(setup: Setup) -> Iterator[tuple[str, Way]]:
    """The rows of the table; what a rival chooses, it chooses once, for the first seed."""
    for label, lists in LISTS.items():
        yield label, _listing(lists)
    inner = _Once(lambda: nk.data.split_random(setup.read(0).train, valid=0.1, test=0, random_state=0))
    for label, (k, loss) in FITS.items():
        yield label, _fitting(k, loss)
    for label, (k, options) in SOFTMAXES.items():
        yield label, _softmax(k, setup.name, inner, options)
    label = "EASE, dense or sparse"
    yield label, _easing(inner, setup.chosen(label))
    for label in RIVALS:
        yield label, _sampling(label, inner, setup.epochs(), setup.chosen(label))
    if setup.python is not None:
        for method in ("als", "bpr"):
            yield f"implicit {method}", _peer(method, setup.python, inner, setup.chosen(f"implicit {method}"))
    if setup.seconds:
        yield "LightGCN", _walking(setup.seconds)


class _Once:
    """What is made when it is first asked for, and kept."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._made = make, None

    def __call__(self) -> Any:
        self._made = self._make() if self._made is None else self._made
        return self._made


def _listing(lists: Callable) -> Way:
    def way(parts: Parts, _seed: int) -> Found:
        start = time.process_time()
        ranked = lists(parts.train, DEPTH)
        return Found(time.process_time() - start, lists=ranked)

    return way


def _fitting(k: int, loss: Any) -> Way:
    def way(parts: Parts, seed: int) -> Found:
        start = time.process_time()
        model = nk.TwoTower(k, loss=loss, random_state=seed).fit(parts.train)
        seconds, chosen = time.process_time() - start, repr(model.loss_) if loss == "auto" else None
        return Found(seconds, tables=(model.left_embeddings_, model.right_embeddings_), settings=chosen)

    return way


def _softmax(k: int, name: str, inner: _Once, options: dict[str, float]) -> Way:
    """The temperature as it was chosen for the sets at hand, by the validation pairs for another one."""
    given = known_temperature(name, options)
    temperature = _Once(lambda: given or _chosen_temperature(inner(), options))

    def way(parts: Parts, seed: int) -> Found:
        loss = CosineSoftmax(temperature=temperature(), **options)
        found = _fitting(k, loss)(parts, seed)
        return replace(found, settings={"temperature": temperature()})

    return way


def known_temperature(name: str, options: dict[str, float]) -> float | None:
    """The one that was chosen for a set with these options of `CosineSoftmax`; None for another set."""
    return TEMPERATURES.get(name, {}).get((options.get("bias_power", 0.5), options.get("imputed", 0.0)))


def _chosen_temperature(inner: Parts, options: dict[str, float]) -> float:
    """The one of largest NDCG@20 of the validation pairs of a few lefts, with 64 numbers a row."""
    check, judged = judged_by(inner), {}
    for temperature in TRIED:
        fitted = _fitting(64, CosineSoftmax(temperature=temperature, **options))(inner, 0).tables
        judged[temperature] = 0.0 if fitted is None else check(*fitted)
    return max(judged, key=lambda temperature: judged[temperature])


def _easing(inner: _Once, chose: dict[str, Any] | None) -> Way:
    ridge = _Once(lambda: chose["ridge"] if chose else chosen_ridge(inner(), DEPTH))

    def way(parts: Parts, _seed: int) -> Found:
        fit, chosen_one = (ease if parts.train.shape[1] <= MOST_OF_EASE else of_neighbours), ridge()
        start = time.process_time()
        lists = fit(parts.train, DEPTH, chosen_one)
        return Found(time.process_time() - start, lists=lists, settings={"ridge": chosen_one, "form": fit.__name__})

    return way


def _sampling(label: str, inner: _Once, epochs: Epochs, chose: dict[str, Any] | None) -> Way:
    setting = _Once(lambda: Setting(**chose) if chose else chosen(RIVALS[label], inner(), 64, epochs))

    def way(parts: Parts, seed: int) -> Found:
        P, Q, seconds = fit_rival(RIVALS[label], setting(), parts.train, 64, seed)
        return Found(seconds, tables=(P, Q), settings=asdict(setting()))

    return way


def _peer(method: str, python: Path, inner: _Once, chose: list[float] | None) -> Way:
    settings = _Once(lambda: chose or fit_peer(python, method, inner(), 0)["settings"])

    def way(parts: Parts, seed: int) -> Found:
        found = fit_peer(python, method, parts, seed, settings())
        return Found(found["seconds"], tables=found["tables"], settings=found["settings"])

    return way


def _walking(seconds: float) -> Way:
    """LightGCN for so long; its settings hold what test pairs say of it on the way, which chooses nothing."""

    def way(parts: Parts, seed: int) -> Found:
        curve: list[dict[str, float]] = []

        def watch(P: np.ndarray, Q: np.ndarray, used: float, epochs: float) -> None:
            found = Found(used, tables=(P, Q))
            curve.append(_judged(found, parts) | {"epochs": epochs})

        P, Q, used, epochs = light_gcn(
            parts.train, 64, *LIGHT_GCN, seed, seconds=seconds, watch=watch, every=seconds / POINTS
        )
        settings = {"rate": LIGHT_GCN[0], "batch": LIGHT_GCN[1], "epochs": epochs, "curve": curve}
        return Found(used, tables=(P, Q), settings=settings)

    return way
