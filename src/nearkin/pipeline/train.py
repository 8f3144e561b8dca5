"""`nearkin train`: a table of pairs to towers and an index of the right side, learned together.

Beside the index lies left.safetensors: the left vectors, which are its queries, and the pairs that are known already.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

import nearkin as nk
from nearkin import metrics
from nearkin._check import check_choice, check_integer
from nearkin._storage import check_target, pack_ids, read_arrays, replacing_folder, unpack_ids, write_arrays
from nearkin._types import Fields, Record, Seed
from nearkin.pipeline.holdout import (
    SPLITS,
    has_split,
    held_out,
    judge_baselines,
    neighbour_examples,
    split_pairs,
    without_totals,
)
from nearkin.pipeline.inputs import LEFT, find_ids, ids_of, side_names_of
from nearkin.pipeline.run import RUN, Steps, write_record
from nearkin.records import Interactions

_DEPTHS = (10, 20, 100)
_BUFFER = 8192  # rows that a layer collects before it starts, IndexingLayer's own default
_MEASURES = ("recall", "precision", "ndcg")


def train_index(
    pairs: Interactions,
    out: str | os.PathLike,
    *,
    n_bytes: int = 16,
    dim: int = 64,
    loss: str = "auto",
    holdout: float = 0.1,
    split: str = "random",
    random_state: Seed = 0,
    steps: Steps | None = None,
    about: Fields | None = None,
) -> Record:
    """Learn towers and index together and save the folder `out`: the index of the right side, and the left side.

    A first fit without the share `holdout` of the pairs ("random", "time" or "leave-last-out", by `split`) is judged by
    them; the saved model is then fitted on all pairs. Pairs with a split of their own are fitted on its training part
    and judged by its test part. Returns the record kept as run.json. ValueError before any work if `out` is no place
    for an index or `n_bytes` does not divide `dim`.
    """
    steps = steps or Steps()
    check_target(out)
    check_choice(split, "split", SPLITS)
    layer = make_layer(pairs, n_bytes, dim, random_state)
    model = nk.TwoTower(dim, index=layer, loss=loss, random_state=random_state)
    quality, kept, judged, given = {}, pairs, None, has_split(pairs)
    trials: list[Record] = []
    if given or holdout:
        parts = nk.data.split_given(pairs) if given else split_pairs(pairs, split, holdout, random_state)
        with steps.step("train") as callback:
            model.fit(parts.train, validation=parts.valid if len(parts.valid) else None, callback=callback)
        judged = held_out(parts.test)
        with steps.step("judge"):
            quality = judge(model, parts.test, n_bytes, random_state)
            quality |= judge_baselines(parts.train, parts.test, _DEPTHS, _MEASURES)
        if given:
            kept = parts.train
        else:
            trials = model.trials_
            model.set_params(loss=model.loss_, regularization=model.regularization_)
    if not given:
        with steps.step("train on all"):
            model.fit(pairs)
    trials = trials or model.trials_
    record = {
        "task": "train", "left": pairs.shape[0], "vectors": pairs.shape[1], "pairs": len(kept), "dimensions": dim,
        "metric": "ip", "method": "learned with the towers", "solver": model.solver_, "loss": model.loss_.name,
        "trials": trials,
        "bytes_per_vector": n_bytes, "compression": metrics.compression_ratio(dim, n_bytes),
        "distortion": model.history_[-1]["distortion"], "regularization": model.regularization_, "omega": model.omega_,
        "quality": quality, "held_out": judged, "words": side_names_of(pairs)._asdict(), **(about or {}),
    }  # fmt: skip
    with steps.step("save"):
        _save(model, kept, out, record, steps)
    return record | {"seconds": steps.seconds}


def make_layer(pairs: Interactions, n_bytes: int, dim: int, random_state: Seed) -> "nk.quantization.IndexingLayer":
    """An indexing layer of `n_bytes` per row: 256 centroids a byte, or 16 for half a byte if there are few rights.

    It starts after 8,192 rows; for a small table after three rounds of its pairs. ValueError for fewer than 16 rights
    and for bytes that do not divide `dim`.
    """
    n_rights = pairs.shape[1]
    if n_rights < 16:
        raise ValueError(
            f"the table has {n_rights} rights; an index is learned for at least 16, use nearkin embed for vectors alone"
        )
    parts, n_centroids = _parts(n_bytes, n_rights)
    fitting = [str(size) for size in range(1, dim + 1) if dim % (parts // n_bytes * size) == 0]
    if str(n_bytes) not in fitting:
        why = f", of two parts each, since {n_rights} rights are too few for 256 centroids" if n_centroids == 16 else ""
        raise ValueError(
            f"bytes is {n_bytes}{why}: {parts} parts do not divide dim={dim}; "
            + (f"give one of {', '.join(fitting)}" if fitting else "give an even dim")
        )
    return nk.quantization.IndexingLayer(
        dim, parts, n_centroids, buffer_size=min(_BUFFER, 3 * len(pairs)), random_state=random_state
    )


def _parts(n_bytes: int, n_rights: int) -> tuple[int, int]:
    """Number of subspaces, and of centroids in each."""
    return (2 * n_bytes, 16) if n_rights < 256 else (n_bytes, 256)


def judge(
    model: "nk.TwoTower", test: Interactions, n_bytes: int, random_state: Seed = 0
) -> dict[str, dict[str, float]]:
    """Measures of the test pairs for three searches: exact, by OPQ after training, by the learned index."""
    if not len(test):
        return {}
    P, Q = model.exact_embeddings_
    after = nk.ProductQuantizer(*_parts(n_bytes, len(Q)), random_state=random_state).fit(Q)
    T, layer = model.right_embeddings_, cast("nk.quantization.IndexingLayer", model.index_)
    searches = {
        "exact, float32": (P, Q),
        "compressed after training (OPQ)": (P, after.decode(after.encode(Q))),
        "learned with the towers": (model.left_embeddings_, layer.to_quantizer().decode(layer.codes(T))),
    }
    return {
        name: metrics.ranking_metrics(left, right, test, seen=model.seen_, k=_DEPTHS, metrics=_MEASURES)
        for name, (left, right) in searches.items()
    }


def _save(model: "nk.TwoTower", kept: Interactions, out: str | os.PathLike, record: Record, steps: Steps) -> None:
    right = model.right_embeddings_
    index = cast("nk.quantization.IndexingLayer", model.index_).export(right, ids=model.right_ids_)
    run = record | {
        "seconds": steps.seconds,
        "history": without_totals(model.history_),
        "examples": neighbour_examples(right, model.right_ids_, kept),
    }
    with replacing_folder(out) as fresh:
        index.save(fresh)
        save_left(fresh, model.left_embeddings_, kept)
        write_record(fresh / RUN, run)


@dataclass(frozen=True)
class LeftSide:
    """Ids (m,) and vectors (m, d) of the left entities, and the known pairs: `seen(i)` are positions in the index."""

    ids: np.ndarray
    vectors: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray

    def seen(self, row: int) -> np.ndarray:
        return self.indices[self.indptr[row] : self.indptr[row + 1]]


def save_left(folder: Path, vectors: np.ndarray, seen: Interactions) -> None:
    """Write the left vectors (m, d) with their ids, and the seen pairs with their weights."""
    arrays = {"vectors": vectors, "indptr": seen.indptr, "indices": seen.indices, "weights": seen.weights}
    write_arrays(folder / LEFT, arrays | pack_ids("left", seen.left_ids))


def read_left(folder: str | os.PathLike) -> LeftSide | None:
    """The left side in a folder; None if it has none."""
    file = Path(folder) / LEFT
    if not file.is_file():
        return None
    arrays = read_arrays(file)
    return LeftSide(unpack_ids("left", arrays), arrays["vectors"], arrays["indptr"], arrays["indices"])


def move_left(old: Path, new: Path, positions: np.ndarray) -> None:
    """Copy the left side of an index whose rows have moved: row i to positions[i], -1 if it was removed."""
    arrays = read_arrays(old / LEFT)
    indptr, moved = arrays["indptr"], positions[arrays["indices"]]
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    stays = moved >= 0
    rows, moved = rows[stays], moved[stays]
    order = np.lexsort((moved, rows))
    counts = np.bincount(rows, minlength=len(indptr) - 1)
    changed = {"indptr": np.concatenate([[0], np.cumsum(counts)]).astype(indptr.dtype), "indices": moved[order]}
    if "weights" in arrays:  # folders of earlier versions have none
        changed["weights"] = arrays["weights"][stays][order]
    write_arrays(new / LEFT, arrays | changed)


def search_left(
    folder: str | os.PathLike,
    left_ids: list[str],
    k: int = 10,
    *,
    with_seen: bool = False,
    index: nk.Index | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and right ids, both (b, k), for left ids given as text; without seen pairs unless `with_seen`.

    `index` is the folder's index if it is open already. ValueError for a folder without a left side and for an unknown
    id.
    """
    k = check_integer(k, "k", low=1)
    index = nk.Index.load(folder) if index is None else index
    left = read_left(folder)
    if left is None:
        raise ValueError(f"{folder} holds no left vectors; make it with `nearkin train`, or give query vectors")
    rows = find_ids(left_ids, left.ids, "left id")
    most = 0 if with_seen else int(np.diff(left.indptr)[rows].max(initial=0))
    scores, found = index.search(left.vectors[rows], k + most)
    if with_seen:
        return scores, found
    known = ids_of(index)
    seen = np.stack([np.isin(ids, known[left.seen(row)]) for ids, row in zip(found, rows, strict=True)])
    order = np.argsort(seen, axis=1, kind="stable")[:, :k]
    scores = np.where(seen, -np.inf, scores)
    return np.take_along_axis(scores, order, 1), np.take_along_axis(found, order, 1)
