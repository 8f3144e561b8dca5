"""Makers of semantic ids: sharing, use of the codes, neighbours by prefix, new items, and a small decoder.

    python -m benchmarks ids --parts makers new --semantic-id FOLDER
    python -m benchmarks ids --parts decoder --seeds 5

1. makers: 40,000 sentence vectors (wordnet_minilm), three codes of 256 values, one seed.
2. new: ids learned from 36,000 of them, and given to the 4,000 others.
3. together: recommendations by the rows that ids decode to, three codes of 32 values, ids made of finished towers and
   ids learned with them; MovieLens-100K (a tenth of its training part, at random), Gowalla (the validation part, the
   3,000 most visited places). The way in which ids are settled was chosen on the test parts, which are left out.
4. decoder: the last item of each person in MovieLens-100K, and of 1,000 people of Gowalla among the 3,000 most
   visited places, by a transformer of two layers that writes ids. An interrupted run goes on.

semantic-id needs NumPy 2, and the other peers NumPy 1.26: --semantic-id names the folder in which pip put it (pip
install --target FOLDER --no-deps semantic-id==0.2.5).
"""

from argparse import Namespace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import nearkin as nk
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.ids import decoder
from benchmarks.ids.makers import MAKERS, Maker, find_semantic_id
from benchmarks.options import RESULTS, parser
from benchmarks.stored import read_json
from nearkin._faiss import nearest_rows

PARTS = ("makers", "new", "together", "decoder")
ROWS, QUERIES = 40_000, 1000
ASKED = 0.1  # of the pairs of MovieLens-100K that judge "together"


def sentences(folder: Path) -> np.ndarray:
    return np.load(folder / "wordnet_minilm.npz")["X"].astype(np.float32)[:ROWS]


def makers(X: np.ndarray, chosen: dict[str, Maker]) -> list[dict[str, Any]]:
    asked = np.random.default_rng(0).choice(len(X), QUERIES, replace=False)
    near = nearest_rows(X, X[asked], 11)[:, 1:]
    rows = []
    for name, maker in chosen.items():
        seconds, made = cpu_seconds(lambda maker=maker: maker(X, 3, 256, 0))
        _, key, counts = np.unique(made.nearest, axis=0, return_inverse=True, return_counts=True)
        shares = [np.bincount(column, minlength=256) / len(X) for column in made.nearest.T]
        same = np.cumprod(made.ids[near] == made.ids[asked, None], axis=2)
        rows.append({
            "maker": name, "seconds": seconds, "shared": float((counts[key] > 1).mean()), "most": int(counts.max()),
            "tokens": made.ids.shape[1], "counters": int(made.ids[:, 3].max()) + 1 if made.ids.shape[1] > 3 else 0,
            "used": [int((share > 0).sum()) for share in shares],
            "perplexity": [float(np.exp(-(p[p > 0] * np.log(p[p > 0])).sum())) for p in shares],
            "error": made.error, "kept": same.mean((0, 1)).tolist()[:3],
        })  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def new_items(X: np.ndarray) -> dict[str, Any]:
    """Ids of new rows: how many old ids changed, and how many new rows left their nearest id, prefix, first code."""
    order = np.random.default_rng(0).permutation(len(X))
    old, new = X[order[: len(X) * 9 // 10]], X[order[len(X) * 9 // 10 :]]
    made = nk.SemanticIds(random_state=0).fit(old)
    before, shared = made.ids_.copy(), made.shared_
    nearest = made.transform(new)
    seconds, ids = cpu_seconds(lambda: made.assign(new))
    errors = [float(((new - made.decode(found)) ** 2).sum(1).mean()) for found in (nearest, ids)]
    result = {
        "old": len(old), "new": len(new), "shared": shared, "seconds": seconds, "error": errors,
        "changed": int((made.ids_[: len(old)] != before).any(1).sum()),
        "moved": [float((nearest[:, :depth] != ids[:, :depth]).any(1).mean()) for depth in (1, 2, 3)],
    }  # fmt: skip
    print(result, flush=True)
    return result


def together(folder: Path, name: str, seed: int) -> list[dict[str, Any]]:
    """Measures of test pairs by exact towers, by ids of these, and by ids learned with towers."""
    table = np.load(folder / f"{name}.npz")
    users, items = table["user"], table["item"]
    if name == "ml100k":
        kept = table["ua_test"] == 0
        test = kept & (np.random.default_rng(seed).random(len(users)) < ASKED)
    else:
        test, train = table["split"] == 1, table["split"] == 0
        kept = (test | train) & np.isin(items, np.argsort(-np.bincount(items[train]), kind="stable")[: decoder.PLACES])
        kept &= (np.bincount(users[train & kept], minlength=users.max() + 1) >= decoder.FEWEST)[users]
    train = nk.Interactions.from_pairs(users[kept & ~test], items[kept & ~test])
    kept &= np.isin(items, train.right_ids)
    known = {"left_ids": train.left_ids, "right_ids": train.right_ids}
    asked = nk.Interactions.from_pairs(users[kept & test], items[kept & test], **known)
    ids = nk.SemanticIds(decoder.LEVELS, decoder.CODES, random_state=seed)
    seconds, model = cpu_seconds(lambda: nk.TwoTower(32, loss="all-pairs", index=ids, random_state=seed).fit(train))
    P, Q = model.exact_embeddings_
    more, after = cpu_seconds(lambda: ids.fit(Q))
    searches = {
        "exact, float32": (P, Q, 0.0), "ids made after training": (P, after.decode(after.ids_), more),
        "ids learned with the towers": (model.left_embeddings_, model.right_embeddings_, seconds),
    }  # fmt: skip
    return [
        {"set": name, "seed": seed, "search": search, "seconds": took}
        | nk.metrics.ranking_metrics(left, right, asked, seen=train, k=20)
        for search, (left, right, took) in searches.items()
    ]


def decode(options: Namespace, chosen: dict[str, Maker], settings: dict[str, Any]) -> None:
    """Each case of each set and seed; what an interrupted run has saved is not run again."""
    saved = RESULTS / "ids_decoder.json"
    found: list[dict[str, Any]] = read_json(saved)["results"] if saved.exists() else []
    done = {(row["set"], row["ids"], row["seed"]) for row in found}
    for seed, name in product(range(1 if options.quick else options.seeds), options.sets):
        log = decoder.read(name, options.data)
        for ids, vectors, maker in decoder.cases(log, chosen, seed):
            if (name, ids, seed) in done:
                continue
            judged = decoder.judge(ids, vectors, maker, log, seed, epochs=1 if options.quick else None)
            found.append({"set": name} | judged)
            print(found[-1], flush=True)
            save("ids_decoder", found, **settings)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options.add_argument("--sets", nargs="+", choices=("ml100k", "gowalla"), default=("ml100k", "gowalla"))
    options.add_argument("--seeds", type=int, default=5, help="of together and decoder")
    options.add_argument("--semantic-id", type=Path, help="folder that holds the package semantic_id")
    options = options.parse_args()
    limit_threads(options.threads)
    there = find_semantic_id(options.semantic_id)
    chosen = {name: maker for name, maker in MAKERS.items() if there or not name.startswith("semantic-id")}
    settings = {"data": options.data, "quick": options.quick, "threads": options.threads}
    rows = 4_000 if options.quick else ROWS
    if "makers" in options.parts:
        real = {name: maker for name, maker in chosen.items() if name != "at random"}
        save("ids_makers", makers(sentences(options.data)[:rows], real), **settings)
    if "new" in options.parts:
        save("ids_new", new_items(sentences(options.data)[:rows]), **settings)
    if "together" in options.parts:
        found = []
        for seed, name in product(range(1 if options.quick else options.seeds), options.sets):
            found += together(options.data, name, seed)
            print(*found[-3:], sep="\n", flush=True)
            save("ids_together", found, **settings)
    if "decoder" in options.parts:
        decode(options, chosen, settings)


if __name__ == "__main__":
    main()
