"""New users and a night's pairs without a new fit: NDCG@20 of a refit's, and CPU seconds beside the refit's.

python -m benchmarks two_tower updates [--sets ml100k gowalla] [--seeds 3]

Fold-in: some users are left out whole; four fifths of the pairs of each are its history, the rest judges. The model of
the other users takes them by `embed_left(history)`; the refit has the history among its pairs. Warm start: a tenth of
the fitted pairs, with 2 % of the users and 2 % of the items in all their pairs, come after the first fit, by
`partial_fit`; both models are judged by the test pairs. Fits are the plain call, which chooses its loss each time. An
item that a model has not met ranks with a score of 0.
"""

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

import nearkin as nk
from benchmarks.harness import cpu_seconds
from benchmarks.jobs import Job, command
from benchmarks.two_tower.problems import read

DEPTH = 20
FOLDED = {"ml100k": (0.1,), "gowalla": (0.02, 0.1)}  # shares of the users that are left out; a fiftieth of 942 is few
LATE_PAIRS, LATE_IDS = 0.1, 0.02


def met_only(pairs: nk.Interactions, keep: np.ndarray) -> nk.Interactions:
    """Some of the pairs, with no other ids than theirs."""
    return nk.Interactions.from_pairs(
        pairs.left_ids[pairs.rows[keep]], pairs.right_ids[pairs.indices[keep]], pairs.weights[keep]
    )


def fold_in(pairs: nk.Interactions, share: float, seed: int, k: int) -> dict[str, float]:
    """NDCG@20 of users that the fit never saw, by fold-in and by a refit, and the seconds of both."""
    rng = np.random.default_rng(seed)
    users = rng.choice(pairs.shape[0], round(share * pairs.shape[0]), replace=False)
    mine = np.isin(pairs.rows, users)
    judged = mine & (rng.random(len(pairs)) < 0.2)
    seen, truth = pairs.select(mine & ~judged), pairs.select(judged)

    _, model = cpu_seconds(lambda: nk.TwoTower(k, random_state=seed).fit(met_only(pairs, ~mine)))
    known = np.isin(seen.right_ids[seen.indices], model.right_ids_)
    history = met_only(seen, known)
    seconds, folded = cpu_seconds(lambda: model.embed_left(history))
    refit_seconds, refit = cpu_seconds(lambda: nk.TwoTower(k, random_state=seed).fit(met_only(pairs, ~judged)))

    return {
        "ndcg": _ndcg(history.left_ids, folded, model, seen, truth),
        "refit": _ndcg(refit.left_ids_, refit.left_embeddings_, refit, seen, truth),
        "seconds": seconds,
        "refit seconds": refit_seconds,
    }


def warm_start(pairs: nk.Interactions, test: nk.Interactions, seed: int, k: int) -> dict[str, float]:
    """NDCG@20 of the test pairs after `partial_fit` of the late pairs and of a refit, and the seconds of both."""
    rng = np.random.default_rng(seed)
    late = rng.random(len(pairs)) < LATE_PAIRS
    for numbers, n in ((pairs.rows, pairs.shape[0]), (pairs.indices, pairs.shape[1])):
        late |= np.isin(numbers, rng.choice(n, round(LATE_IDS * n), replace=False))
    model = nk.TwoTower(k, random_state=seed).fit(met_only(pairs, ~late))
    seconds, _ = cpu_seconds(lambda: model.partial_fit(met_only(pairs, late)))
    refit_seconds, refit = cpu_seconds(lambda: nk.TwoTower(k, random_state=seed).fit(pairs))
    found = {"ndcg": model, "refit": refit}
    scores = {name: _ndcg(m.left_ids_, m.left_embeddings_, m, pairs, test) for name, m in found.items()}
    return scores | {"seconds": seconds, "refit seconds": refit_seconds}


def _ndcg(
    left_ids: np.ndarray, left: np.ndarray, model: nk.TwoTower, seen: nk.Interactions, truth: nk.Interactions
) -> float:
    """NDCG@20 over all ids of `truth`; zeros stand for those that the model has not met."""
    P = rows_of(truth.left_ids, left_ids, left)
    Q = rows_of(truth.right_ids, model.right_ids_, model.right_embeddings_)
    return nk.metrics.ranking_metrics(P, Q, truth, seen=seen, k=DEPTH)[f"ndcg@{DEPTH}"]


def rows_of(wanted: np.ndarray, ids: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The rows of X (n, k), called `ids` (n,), for each of the ids `wanted`; zeros for one that is not there."""
    order = np.argsort(ids)
    place = order[np.searchsorted(ids, wanted, sorter=order).clip(max=len(ids) - 1)]
    return np.where((ids[place] == wanted)[:, None], X[place], np.float32(0))


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    k = 16 if given.quick else 64
    pairs = nk.data.planted_interactions(50, 40, random_state=0).interactions
    nk.TwoTower(4, random_state=0).fit(pairs)  # compiles
    for name, seed in product(given.sets, range(1 if given.quick else given.seeds)):
        parts = read(name, given.data, seed)
        for share in FOLDED[name]:
            key = {"set": name, "what": f"fold-in of {share:.0%} of the users", "seed": seed}
            yield "two_tower_updates", Job(key, partial(fold_in, parts.train, share, seed, k))
        key = {"set": name, "what": "warm start", "seed": seed}
        yield "two_tower_updates", Job(key, partial(warm_start, parts.train, parts.test, seed, k))


def main() -> None:
    command(__doc__, jobs, {"depth": DEPTH}, sets=tuple(FOLDED), seeds=3)
