"""Makers of semantic ids: sharing, use of the codes, neighbours by prefix, and recommendations by what ids decode to.

    python -m benchmarks ids --parts makers --semantic-id FOLDER
    python -m benchmarks ids --parts together --seeds 5

makers: 40,000 sentence vectors (wordnet_minilm), three codes of 256 values, one seed. together: recommendations by the
rows that ids decode to, three codes of 32 values, ids made of finished towers and ids learned with them;
MovieLens-100K (a tenth of its training part, at random), Gowalla (the validation part, the 3,000 most visited places).
The way in which ids are settled was chosen on the test parts, which are left out.

semantic-id needs NumPy 2, and the other peers NumPy 1.26: --semantic-id names the folder in which pip put it (pip
install --target FOLDER --no-deps semantic-id==0.2.5).
"""

from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

import nearkin as nk
from benchmarks.harness import arrays, cpu_seconds
from benchmarks.ids.makers import MAKERS, Maker, find_semantic_id
from benchmarks.jobs import Job, Row, command
from nearkin._exact import nearest

PARTS = ("makers", "together")
ROWS, QUERIES = 40_000, 1000
ASKED = 0.1  # of the pairs of MovieLens-100K that judge "together"
LEVELS, CODES = 3, 32  # of "together": 32,768 ids for 1,682 or 3,000 items
PLACES, FEWEST = 3_000, 10  # of gowalla: the most visited places, visits of a person


def sentences(folder: Path) -> np.ndarray:
    return arrays(folder, "wordnet_minilm", "X")[0].astype(np.float32)[:ROWS]


def made_by(maker: Maker, X: np.ndarray) -> Row:
    """Shares and error of one maker's ids."""
    asked = np.random.default_rng(0).choice(len(X), QUERIES, replace=False)
    near = nearest(X, X[asked], 11)[1][:, 1:]
    seconds, made = cpu_seconds(lambda: maker(X, 3, 256, 0))
    _, key, counts = np.unique(made.nearest, axis=0, return_inverse=True, return_counts=True)
    shares = [np.bincount(column, minlength=256) / len(X) for column in made.nearest.T]
    same = np.cumprod(made.ids[near] == made.ids[asked, None], axis=2)
    return {
        "seconds": seconds, "shared": float((counts[key] > 1).mean()), "most": int(counts.max()),
        "tokens": made.ids.shape[1], "counters": int(made.ids[:, 3].max()) + 1 if made.ids.shape[1] > 3 else 0,
        "used": [int((share > 0).sum()) for share in shares],
        "perplexity": [float(np.exp(-(p[p > 0] * np.log(p[p > 0])).sum())) for p in shares],
        "error": made.error, "kept": same.mean((0, 1)).tolist()[:3],
    }  # fmt: skip


def together(folder: Path, name: str, seed: int) -> list[Row]:
    """Measures of test pairs by exact towers, by ids of these, and by ids learned with towers."""
    table = np.load(folder / f"{name}.npz")
    users, items = table["user"], table["item"]
    if name == "ml100k":
        kept = table["ua_test"] == 0
        test = kept & (np.random.default_rng(seed).random(len(users)) < ASKED)
    else:
        test, train = table["split"] == 1, table["split"] == 0
        kept = (test | train) & np.isin(items, np.argsort(-np.bincount(items[train]), kind="stable")[:PLACES])
        kept &= (np.bincount(users[train & kept], minlength=users.max() + 1) >= FEWEST)[users]
    train = nk.Interactions.from_pairs(users[kept & ~test], items[kept & ~test])
    kept &= np.isin(items, train.right_ids)
    known = {"left_ids": train.left_ids, "right_ids": train.right_ids}
    asked = nk.Interactions.from_pairs(users[kept & test], items[kept & test], **known)
    ids = nk.SemanticIds(LEVELS, CODES, random_state=seed)
    seconds, model = cpu_seconds(lambda: nk.TwoTower(32, loss="all-pairs", index=ids, random_state=seed).fit(train))
    P, Q = model.exact_embeddings_
    more, after = cpu_seconds(lambda: ids.fit(Q))
    searches = {
        "exact, float32": (P, Q, 0.0), "ids made after training": (P, after.decode(after.ids_), more),
        "ids trained with the towers": (model.left_embeddings_, model.right_embeddings_, seconds),
    }  # fmt: skip
    return [
        {"search": search, "seconds": took} | nk.metrics.ranking_metrics(left, right, asked, seen=train, k=20)
        for search, (left, right, took) in searches.items()
    ]


def jobs(given: Namespace) -> Iterator[tuple[str, Job]]:
    if "makers" in given.parts:
        X = sentences(given.data)[: 4_000 if given.quick else None]
        there = find_semantic_id(Path(given.semantic_id) if given.semantic_id else None)
        for name, maker in MAKERS.items():
            if there or not name.startswith("semantic-id"):
                yield "ids_makers", Job({"maker": name}, partial(made_by, maker, X))
    if "together" in given.parts:
        for seed, name in product(range(1 if given.quick else given.seeds), given.sets):
            yield "ids_together", Job({"set": name, "seed": seed}, partial(together, given.data, name, seed))


def main() -> None:
    command(__doc__, jobs, {}, parts=PARTS, sets=("ml100k", "gowalla"), seeds=5, semantic_id="")
