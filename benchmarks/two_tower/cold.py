"""Unseen rights with and without features, planted data."""

import argparse
import time

import numpy as np

import nearkin as nk
from benchmarks.two_tower.problems import test_metrics


def cold(options: argparse.Namespace) -> dict:
    """200 of 1,500 rights lose all their pairs: NDCG@20 among them, and NDCG@100 on the others."""
    rows: dict[str, list] = {}
    for seed in range(options.seeds):
        planted = nk.data.planted_interactions(3000, 1500, pairs_per_row=30, random_state=seed)
        unseen = np.sort(np.random.default_rng(seed).choice(1500, 200, replace=False))
        hidden = np.isin(planted.interactions.indices, unseen)
        parts = nk.data.split_random(planted.interactions.select(~hidden), random_state=seed)
        truth = planted.interactions.select(hidden).matrix()[:, unseen]
        bare = nk.Interactions.from_pairs(
            parts.train.rows, parts.train.indices, left_ids=parts.train.left_ids, right_ids=parts.train.right_ids
        )
        best = planted.affinities, np.eye(1500)
        rows.setdefault("planted order", []).append((test_metrics(*best, parts), best[0], best[1][unseen], truth, 0.0))
        for label, pairs in (("als, no features", bare), ("als, features", parts.train)):
            start = time.process_time()
            model = nk.TwoTower(32, loss="all-pairs", random_state=seed).fit(pairs)
            used = time.process_time() - start
            P, Q = model.left_embeddings_, model.right_embeddings_
            rows.setdefault(label, []).append((test_metrics(P, Q, parts), P, Q[unseen], truth, used))
    result = {}
    for label, runs in rows.items():
        unseen_ndcg = [nk.metrics.ranking_metrics(P, Q, truth, k=20)["ndcg@20"] for _, P, Q, truth, _ in runs]
        warm, seconds = (float(np.mean(v)) for v in ([r[0]["ndcg@100"] for r in runs], [r[4] for r in runs]))
        result[label] = {"warm ndcg@100": warm, "cold ndcg@20": float(np.mean(unseen_ndcg)), "seconds": seconds}
        print(label, result[label], flush=True)
    return result
