"""The whole of `nearkin train`: from a table of pairs to a searchable index in one go."""

import os
from typing import cast

import numpy as np

import nearkin as nk
from nearkin import metrics
from nearkin._check import check_choice
from nearkin._storage import check_target, replacing_folder
from nearkin._types import Fields, Record, Seed
from nearkin.pipeline.embedding_folder import words_in
from nearkin.pipeline.folder import RUN, write_record
from nearkin.pipeline.judging import SPLITS, held_out, judge_baselines, split_pairs
from nearkin.pipeline.left_side import neighbours_by_id, save_left
from nearkin.pipeline.steps import Steps
from nearkin.records import Interactions

_DEPTHS = (10, 20, 100)
_BUFFER = 8192  # rows that a layer collects before it starts, IndexingLayer's own default
_SHOWN = 8  # example rights in the report
_MEASURES = ("recall", "precision", "ndcg")


def train_index(
    pairs: Interactions,
    out: str | os.PathLike,
    *,
    n_bytes: int = 16,
    dim: int = 64,
    loss: str = "all-pairs",
    holdout: float = 0.1,
    split: str = "random",
    random_state: Seed = 0,
    steps: Steps | None = None,
    about: Fields | None = None,
) -> Record:
    """Learn towers and index together and save the folder `out`: the index of the right side, and the left side.

    Pairs with a split are fitted on its training part and judged on its test part. Without one, the share `holdout` of
    the pairs ("random", "time" or "leave-last-out", as `split` says) judges a first fit, and what is saved is fitted on
    all pairs. Returns the record kept as run.json. Raises ValueError before any work if `out` is no place for an index
    or `n_bytes` does not divide `dim`.
    """
    steps = steps or Steps()
    check_target(out)
    layer = make_layer(pairs, n_bytes, dim, random_state)
    model = nk.TwoTower(dim, index=layer, loss=loss, random_state=random_state)
    quality, kept, judged = {}, pairs, None
    check_choice(split, "split", SPLITS)
    given = pairs.split is not None and bool((pairs.split == 0).any())
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
            model.set_params(regularization=model.regularization_)
    if not given:
        with steps.step("train on all"):
            model.fit(pairs)
    record = {
        "task": "train", "left": pairs.shape[0], "vectors": pairs.shape[1], "pairs": len(kept), "dimensions": dim,
        "metric": "ip", "method": "learned with the towers", "solver": model.solver_, "loss": loss,
        "bytes_per_vector": n_bytes, "compression": metrics.compression_ratio(dim, n_bytes),
        "distortion": model.history_[-1]["distortion"], "regularization": model.regularization_, "omega": model.omega_,
        "quality": quality, "held_out": judged,
        "words": words_in(pairs)._asdict(),
        **(about or {}),
    }  # fmt: skip
    with steps.step("save"):
        _save(model, kept, out, record, steps)
    return record | {"seconds": steps.seconds}


def make_layer(pairs: Interactions, n_bytes: int, dim: int, random_state: Seed) -> "nk.quantization.IndexingLayer":
    """An indexing layer of `n_bytes` a row: 256 centroids a byte, or 16 a half byte where there are few rights.

    It starts after 8,192 rows, or what three rounds over a small table show. Raises ValueError for fewer than 16 rights
    and for bytes that do not divide `dim`.
    """
    n_rights = pairs.shape[1]
    if n_rights < 16:
        raise ValueError(
            f"the table has {n_rights} rights; an index is learned for at least 16, use nearkin embed for vectors alone"
        )
    few = n_rights < 256
    each = 2 if few else 1  # parts of a byte
    _check_bytes(n_bytes, each, dim, n_rights)
    return nk.quantization.IndexingLayer(
        dim,
        each * n_bytes,
        16 if few else 256,
        buffer_size=min(_BUFFER, 3 * len(pairs)),
        random_state=random_state,
    )


def _check_bytes(n_bytes: int, each: int, dim: int, n_rights: int) -> None:
    """ValueError unless the parts, so many of each byte, divide `dim`."""
    fitting = [str(size) for size in range(1, dim + 1) if dim % (each * size) == 0]
    if str(n_bytes) in fitting:
        return
    why = f", of two parts each, since {n_rights} rights are too few for 256 centroids" if each == 2 else ""
    raise ValueError(
        f"bytes is {n_bytes}{why}: {each * n_bytes} parts do not divide dim={dim}; "
        + (f"give one of {', '.join(fitting)}" if fitting else "give an even dim")
    )


def judge(
    model: "nk.TwoTower", test: Interactions, n_bytes: int, random_state: Seed = 0
) -> dict[str, dict[str, float]]:
    """Quality on the test pairs by way of search: exact, through OPQ after training, through the learned index."""
    if not len(test):
        return {}
    P, Q = model.exact_embeddings_
    few = len(Q) < 256
    after = nk.ProductQuantizer(n_bytes * (2 if few else 1), 16 if few else 256, random_state=random_state).fit(Q)
    T, layer = model.right_embeddings_, cast("nk.quantization.IndexingLayer", model.index_)
    ways = {
        "exact, float32": (P, Q),
        "compressed after training (OPQ)": (P, after.decode(after.encode(Q))),
        "learned with the towers": (model.left_embeddings_, layer.to_quantizer().decode(layer.codes(T))),
    }
    return {
        name: metrics.ranking_metrics(left, right, test, seen=model.seen_, k=_DEPTHS, metrics=_MEASURES)
        for name, (left, right) in ways.items()
    }


def _save(model: "nk.TwoTower", kept: Interactions, out: str | os.PathLike, record: Record, steps: Steps) -> None:
    right = model.right_embeddings_
    index = cast("nk.quantization.IndexingLayer", model.index_).export(right, ids=model.right_ids_)
    popular = np.argsort(-np.bincount(kept.indices, minlength=len(right)), kind="stable")[:_SHOWN]
    run = record | {
        "seconds": steps.seconds,
        "history": [{name: value for name, value in entry.items() if name != "total"} for entry in model.history_],
        "examples": neighbours_by_id(right, model.right_ids_, popular),
    }
    with replacing_folder(out) as fresh:
        index.save(fresh)
        save_left(fresh, model.left_embeddings_, kept)
        write_record(fresh / RUN, run)
