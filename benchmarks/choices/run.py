"""What every choice by held-out data takes, and what its result is worth on other data: one table before a change of
the rules and one after.

python -m benchmarks.choices.run [--only starts,bridge] [--sets gist,mnist] [--seeds 3] [--out FILE.json]
    [--before FILE.npz] [--data DIR]

Public names alone are called, so the file also runs on an older tree. Each choice is made on small parts of six sets
(rankings and comparisons: of those that there are), with rows drawn anew for each seed. Prints the winner, the figure
and CPU seconds; --out also writes FILE.npz, the figure of each query or user. With --before, another run's FILE.npz,
the paired difference and its standard error follow.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from sklearn.datasets import load_digits

import nearkin as nk
from benchmarks import options
from nearkin.metrics.ranking import ranking_values

LEARNED, SEARCHED, QUERIES, K = 4_096, 4_000, 1_000, 10
VECTORS = ("sift", "mnist", "gist", "sentences", "heavy", "blobs")
Made = tuple[str, np.ndarray]  # the winner, and the figure of each query


def rows_of(name: str, data: Path) -> np.ndarray:
    """The rows (n, d) float32 of a set."""
    files = {"sift": ("sift_bsds", "learn"), "mnist": ("mnist", "X_train"), "gist": ("cifar10_gist512", "X")}
    files["sentences"] = ("wordnet_minilm", "X")
    if name in files:
        file, key = files[name]
        with np.load(data / f"{file}.npz") as z:
            return z[key][:16_000].astype(np.float32)
    rng = np.random.default_rng(20)
    X = rng.standard_t(4, size=(12_000, 64)) * np.arange(1, 65) ** -0.4 + 2
    if name == "blobs":
        X = rng.normal(size=(12_000, 64)) * 0.3 + rng.normal(size=(200, 64))[rng.integers(200, size=12_000)]
    return X.astype(np.float32)


def parts(name: str, data: Path, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn from, to search, and queries."""
    X = rows_of(name, data)
    X = X[np.random.default_rng(seed).permutation(len(X))]
    return X[:LEARNED], X[LEARNED : LEARNED + SEARCHED], X[LEARNED + SEARCHED : LEARNED + SEARCHED + QUERIES]


def nearest(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    index = faiss.IndexFlatL2(rows.shape[1])
    index.add(np.ascontiguousarray(rows, np.float32))
    return index.search(np.ascontiguousarray(queries, np.float32), K)[1]


def shares(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Recall 10@10 of each query (q,)."""
    return np.array([len(set(a) & set(b)) / K for a, b in zip(found.tolist(), exact.tolist(), strict=True)])


def recalls(decoded: np.ndarray, rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    return shares(nearest(decoded, queries), nearest(rows, queries))


def won(model: Any, older: Callable[[], str]) -> str:
    """The winner in the records of a model, or what an older tree says of it."""
    trials = getattr(model, "trials_", None) or []
    return next((str(trial["candidate"]) for trial in trials if trial.get("won")), None) or older()


def by_vectors(make: Callable[[np.ndarray, np.ndarray, np.ndarray, int], Made]) -> Callable[..., Iterator[Any]]:
    def each(data: Path, seed: int) -> Iterator[tuple[str, Callable[[], Made]]]:
        for name in VECTORS:
            yield name, lambda name=name: make(*parts(name, data, seed), seed)

    return each


def starts(X: np.ndarray, rows: np.ndarray, Q: np.ndarray, seed: int) -> Made:
    model = nk.ProductQuantizer(8, 256, max_iter=8, random_state=seed).fit(X)
    decoded = model.decode(model.encode(rows))
    return won(model, lambda: max(model.init_recall_, key=model.init_recall_.get)), recalls(decoded, rows, Q)


def scans(X: np.ndarray, rows: np.ndarray, Q: np.ndarray, seed: int) -> Made:
    model = nk.ProductQuantizer(16, 16, None, random_state=seed).fit(X)
    fast = bool(model.fast_scan_["l2"])
    index = model.to_faiss(fast_scan=fast)
    model.add_to(index, rows)
    return ("fast" if fast else "exact"), shares(index.search(Q, K)[1], nearest(rows, Q))


def axes(X: np.ndarray, rows: np.ndarray, Q: np.ndarray, seed: int) -> Made:
    index = nk.Index.build(rows, nk.quantization.AxisQuantizer(24).fit(X))
    lengths = getattr(index.quantizer, "lengths_", ())
    return ("with length" if len(lengths) else "without"), shares(index.search(Q, K)[1], nearest(rows, Q))


def codes(X: np.ndarray, rows: np.ndarray, Q: np.ndarray, seed: int) -> Made:
    """A code of 16 bytes for an index of a hundred times the rows learned from."""
    found = nk.quantization.best(X, 16, n_vectors=100 * len(X), random_state=seed)
    norms = {} if getattr(found, "norms", None) is None else {"norms": found.norms}
    index = nk.Index.build(rows, found.quantizer, **norms)
    first = (found.trials if hasattr(found, "trials") else found.table)[0]
    return str(first.get("candidate") or first["name"]), shares(index.search(Q, K)[1], nearest(rows, Q))


def rotation(X: np.ndarray, rows: np.ndarray, Q: np.ndarray, seed: int) -> Made:
    model = nk.Rotation("int4", max_iter=5, random_state=seed).fit(X)
    codec = faiss.IndexScalarQuantizer(X.shape[1], faiss.ScalarQuantizer.QT_4bit)
    Z = model.transform(rows)
    codec.train(Z)
    codec.add(Z)
    return model.chosen_, shares(codec.search(model.transform(Q), K)[1], nearest(rows, Q))


def bridge(X: np.ndarray, rows: np.ndarray, Q: np.ndarray, seed: int) -> Made:
    """From the same rows behind a map that is the less a rotation, the larger the seed."""
    rng, mean = np.random.default_rng(seed), X.mean(0)
    axes = np.linalg.eigh(np.cov((X - mean).T))[1][:, ::-1][:, :48]
    scale, gains = ((X - mean) @ axes[:, :32]).std(), np.exp(0.2 * seed * rng.normal(size=48))
    turn = np.linalg.qr(rng.normal(size=(48, 48)))[0]

    def old(part: np.ndarray) -> np.ndarray:
        return (part - mean) @ axes[:, :32]

    def new(part: np.ndarray) -> np.ndarray:
        return np.tanh(0.3 * (part - mean) @ axes * gains / scale @ turn)

    model = nk.Bridge(metric="l2", random_state=seed).fit(new(X), old(X))
    return model.kind_, shares(nearest(old(rows), model.transform(new(Q))), nearest(new(rows), new(Q)))


def labelled(data: Path, seed: int) -> Iterator[tuple[str, Callable[[], Made]]]:
    """The scale of SCQ by labels: mean average precision."""
    for name, file in {"mnist": "mnist", "gist": "cifar10_gist512", "digits": ""}.items():
        if file:
            with np.load(data / f"{file}.npz") as z:
                X, y = (z["X_train"], z["y_train"]) if name == "mnist" else (z["X"], z["y"])
        else:
            X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(X))[:5_000]
        X, y = X[order].astype(np.float32), y[order]
        yield name, lambda X=X, y=y: _scale(X, y, len(X) * 4 // 5, seed)


def _scale(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> Made:
    plain = nk.OgE(32, n_components=64, scale="eq25", random_state=seed).fit(X[:n])
    model = nk.OgE(32, n_components=64, random_state=seed).fit(X[:n], y[:n])
    codes = model.encode(X[n:]), model.encode(X[:n])
    found = nk.metrics.hamming_histograms(*codes, y[n:], y[:n]).average_precision()
    return f"{model.scale_ / plain.scale_:.2f}", found


def pairs_of(name: str, data: Path) -> nk.Interactions:
    with np.load(data / f"{name}.npz") as z:
        users, items = z["user"], z["item"]
    few = np.random.default_rng(0).permutation(np.unique(users))[:500] if name != "ml100k" else np.unique(users)
    chosen = np.isin(users, few)
    return nk.Interactions.from_pairs(users[chosen], items[chosen])


def towers(data: Path, seed: int) -> Iterator[tuple[str, Callable[[], Made]]]:
    """The loss, and the strength of regularization of all pairs: mean of Recall@20 and NDCG@20 of each user."""
    for name in ("ml100k", "gowalla", "yelp2018"):
        split = nk.data.split_random(pairs_of(name, data), valid=0, test=0.2, random_state=seed)
        yield f"loss, {name}", lambda split=split: _tower("auto", split, seed)
        yield f"regularization, {name}", lambda split=split: _tower("all-pairs", split, seed)


def _tower(loss: str, split: Any, seed: int) -> Made:
    model = nk.TwoTower(32, loss=loss, solver=nk.embedding.Auto(max_iter=5), random_state=seed).fit(split.train)
    users = np.flatnonzero(np.diff(split.test.indptr))
    found = ranking_values(
        model.left_embeddings_, model.right_embeddings_, split.test, seen=split.train, k=20, rows=users
    )
    name = f"{model.regularization_:.3g}" if loss != "auto" else repr(model.loss_)
    return name, (found["recall@20"] + found["ndcg@20"]) / 2


def dimensions(data: Path, seed: int) -> Iterator[tuple[str, Callable[[], Made]]]:
    """The dimension of an ordinal embedding: the share of held-out answers that it satisfies."""
    rng = np.random.default_rng(seed)
    with np.load(data / "music_triplets.npz") as z:
        music = z["triplets"]
    music = music[(music[:, 0] != music[:, 1]) & (music[:, 0] != music[:, 2]) & (music[:, 1] != music[:, 2])]
    yield "music", lambda: _dimension(music[rng.permutation(len(music))[:3_000]], seed)
    for name, p in (("line", 1), ("plane", 2), ("space", 3), ("five", 5)):
        X = rng.normal(size=(30, p))
        i, j, k = np.stack([rng.choice(30, 3, replace=False) for _ in range(1_600)]).T
        far = np.linalg.norm(X[i] - X[j], axis=1) > np.linalg.norm(X[i] - X[k], axis=1)
        swap = far ^ (rng.random(1_600) < 0.1)
        rows = np.stack([i, np.where(swap, k, j), np.where(swap, j, k)], axis=1)
        yield name, lambda rows=rows: _dimension(rows, seed)


def _dimension(rows: np.ndarray, seed: int) -> Made:
    n = len(rows) * 3 // 4
    model = nk.OrdinalEmbedding("auto", random_state=seed).fit(rows[:n])
    near, far = (np.linalg.norm(model.embedding_[rows[n:, 0]] - model.embedding_[rows[n:, j]], axis=1) for j in (1, 2))
    return str(model.n_components_), (near < far).astype(float)


CHOICES = {
    **{f.__name__: by_vectors(f) for f in (starts, scans, axes, codes, rotation, bridge)},
    "scale": labelled, "towers": towers, "dimensions": dimensions,
}  # fmt: skip


def main() -> None:
    words = options.parser(__doc__)
    words.formatter_class = argparse.RawDescriptionHelpFormatter
    words.add_argument("--only", default=",".join(CHOICES))
    words.add_argument("--sets", default="", help="part of the names of sets; all by default")
    words.add_argument("--seeds", type=int, default=3)
    words.add_argument("--out", type=Path)
    words.add_argument("--before", type=Path)
    given = words.parse_args()
    faiss.omp_set_num_threads(given.threads)
    before = dict(np.load(given.before)) if given.before else {}
    table: list[dict[str, Any]] = []
    values: dict[str, np.ndarray] = {}
    for choice in given.only.split(","):
        for seed in range(1 if given.quick else given.seeds):
            for name, run in CHOICES[choice](given.data, seed):
                if not any(part in name for part in given.sets.split(",")):
                    continue
                started, key = time.process_time(), f"{choice}, {name}, seed {seed}"
                winner, values[key] = run()
                row = {"choice": choice, "set": name, "seed": seed, "winner": winner, "figure": values[key].mean()}
                row["error"] = values[key].std(ddof=1) / len(values[key]) ** 0.5
                row["seconds"] = time.process_time() - started
                if key in before:
                    lead = values[key] - before[key]
                    row |= {"lead": lead.mean(), "lead_error": lead.std(ddof=1) / len(lead) ** 0.5}
                table.append({k: round(float(v), 5) if isinstance(v, float) else v for k, v in row.items()})
                print(json.dumps(table[-1]), flush=True)
                if given.out:
                    given.out.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")
                    np.savez_compressed(given.out.with_suffix(".npz"), **values)


if __name__ == "__main__":
    main()
