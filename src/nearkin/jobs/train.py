"""`nearkin train`: vectors of users and items, and a compact index of the items, trained together."""

from typing import TYPE_CHECKING, cast

import numpy as np

import nearkin as nk
from nearkin import _storage
from nearkin._fields import StrPath, command, counted
from nearkin._types import Fields, Record, Seed
from nearkin.data import Parts, VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.jobs.arguments import Column, File, Folder
from nearkin.jobs.ids import make_ids
from nearkin.jobs.inputs import SideNames, columns_of
from nearkin.jobs.pairs import (
    LEARNED,
    SPLITS,
    Values,
    fit_and_judge,
    for_report,
    held_out_in_words,
    judge_baselines,
    save_left,
)
from nearkin.jobs.run import RUN, Steps, threads_used, write_record
from nearkin.metrics.ranking import ranking_metrics
from nearkin.records import Interactions

if TYPE_CHECKING:
    from nearkin.quantization.layer.ids import IdsIndex

_DEPTHS, _MEASURES = (10, 20, 100), ("recall", "precision", "ndcg")
_BUFFER = 8192  # rows that a layer collects before it starts, IndexingLayer's own default


def train(
    pairs: File,
    *,
    out: Folder,
    n_bytes: int | None = None,
    levels: int | None = None,
    codes: int | None = None,
    dim: int = 64,
    left: Column | None = None,
    right: Column | None = None,
    weight: Column | None = None,
    timestamp: Column | None = None,
    min_weight: float | None = None,
    split: str | None = None,
    missing: str = "raise",
    loss: str = "auto",
    seed: int = 0,
    overwrite: bool = False,
) -> Record:
    """Train vectors of users and items and a compact index of the items, together.

    Pairs held out of training measure the recall of the index, next to exact search and codes made after training.
    The folder holds the index (its index.faiss opens in plain FAISS), the users' vectors and a report. With `levels` or
    `codes` it holds semantic ids of the items, trained with the vectors, in files as `nearkin ids` writes them.

    Examples:

    - nearkin train pairs.csv --bytes 16 --out idx
    - nearkin train pairs.csv --levels 3 --out ids
    - nearkin recommend idx --all --out recs.csv

    Parameters
    ----------
    pairs: A table of pairs, .csv, .jsonl, .parquet, ...: left, right[, weight][, timestamp][, split].
    out: Folder to write.
    n_bytes: Bytes of a code; must divide `dim`. [default: 16]
    levels: Codes of a semantic id: train ids in place of an index. [default with `codes`: 3]
    codes: Values of each code of a semantic id, a power of two. [default with `levels`: 256]
    dim: Dimensions of the vectors.
    left: Pairs: the column of the left side, for example user.
    right: Pairs: the column of the right side, for example item.
    weight: Pairs: the column of weights, counts or ratings.
    timestamp: Pairs: the column of times: numbers of one unit, or ISO dates.
    min_weight: Pairs: leave out rows of smaller weight.
    split: Pairs: the rule of held-out pairs: random, time (the latest), leave-last-out, none, or a column of 0 (train),
        1 (validation), 2 (test). [default: random]
    missing: What to do with pairs or answers that lack a cell: raise an error, or drop and count them.
    loss: The loss: auto (all-pairs or cosine-softmax, by held-out pairs), all-pairs, cosine-softmax, in-batch-softmax.
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    ids = None
    if levels is not None or codes is not None:
        if n_bytes is not None:
            raise ValueError(f"n_bytes is {n_bytes}, of an index, and levels or codes make semantic ids; leave one out")
        ids = nk.SemanticIds(3 if levels is None else levels, 256 if codes is None else codes, random_state=seed)
    _storage.check_target(out, overwrite, [pairs])
    with Steps().step("read"):
        record = nk.read_interactions(
            pairs, left=left, right=right, weight=weight, timestamp=timestamp, min_weight=min_weight,
            split=None if split in SPLITS else split, missing=missing,
        )  # fmt: skip
    about = {"data": str(pairs), "understood": record.source and str(record.source), "seed": seed}
    made = train_index(
        record, out, n_bytes=16 if n_bytes is None else n_bytes, ids=ids, dim=dim, loss=loss, split=split,
        random_state=seed, overwrite=overwrite, about={**about, "threads": threads_used()},
    )  # fmt: skip
    more = [] if ids is not None else [command("recommend", out, all=True, out="recs.csv")]
    held_out = held_out_in_words(made["held_out"], SideNames.of(columns_of(record)).left)
    return made | {"notes": [*held_out, *made["notes"]], "next": [command("report", out), *more]}


def train_index(
    pairs: Interactions,
    out: StrPath,
    *,
    n_bytes: int = 16,
    ids: "nk.SemanticIds | None" = None,
    dim: int = 64,
    loss: str = "auto",
    split: str | None = None,
    random_state: Seed = 0,
    about: Fields | None = None,
    overwrite: bool = False,
) -> Record:
    """Train towers and index together, and save them in the folder `out`.

    `n_bytes` of a code divides `dim`; `ids`, unfitted, are fitted with the towers in place of an index. `split` is as
    in `embed_pairs`, None for the table's own. Returns what is saved as run.json.
    """
    steps = Steps()
    index = ids or _make_layer(pairs, n_bytes, dim, random_state)
    model = nk.TwoTower(dim, index=index, loss=loss, random_state=random_state)

    def measure(parts: Parts) -> Values:
        found = _judge_index(model, parts, n_bytes if ids is None else ids, random_state)
        return found | judge_baselines(parts.train, parts.test, _DEPTHS, _MEASURES, random_state)

    judged, kept = fit_and_judge(model, pairs, split, measure, steps)
    if ids is not None:
        made, file = cast("IdsIndex", model.index_).ids, VectorFile(str(out), array_rows(model.exact_embeddings_[1]))
        named = {"pairs": len(kept), "dim": dim, "loss": model.loss_.name, **judged, **(about or {})}
        return make_ids(file, out, made, model.right_ids_, about=named, overwrite=overwrite, steps=steps)
    record = {
        "task": "train", "left": pairs.shape[0], "vectors": pairs.shape[1], "pairs": len(kept), "dimensions": dim,
        "metric": "ip", "method": "trained with the towers", "solver": model.solver_, "loss": model.loss_.name,
        "bytes_per_vector": n_bytes, "compression": 4 * dim / n_bytes,
        "distortion": model.history_[-1]["distortion"], "regularization": model.regularization_, "omega": model.omega_,
        **judged, "words": columns_of(pairs), **(about or {}),
    }  # fmt: skip
    with steps.step("save"), _storage.replacing_folder(out, overwrite) as fresh:
        right, layer = model.right_embeddings_, cast("nk.quantization.IndexingLayer", model.index_)
        nk.Index.build(right, layer.to_quantizer(), model.right_ids_, "ip").save(fresh)
        save_left(fresh, model.left_embeddings_, kept)
        write_record(fresh / RUN, record | {"seconds": steps.seconds} | for_report(model, right, kept))
    return record | {"seconds": steps.seconds}


def _judge_index(model: "nk.TwoTower", parts: Parts, code: "int | nk.SemanticIds", random_state: Seed = 0) -> Values:
    """Measures of the test pairs for three searches: exact, by codes made after training (OPQ of `code` bytes, or such
    ids), by the learned ones."""
    (P, Q), T = model.exact_embeddings_, model.right_embeddings_
    if isinstance(code, nk.SemanticIds):
        name, after, learned = "ids made after training", code.decode(code.fit(Q).ids_), T
    else:
        made = nk.ProductQuantizer(*_parts(code, len(Q)), random_state=random_state).fit(Q)
        layer = cast("nk.quantization.IndexingLayer", model.index_)
        name, after = "compressed after training (OPQ)", made.decode(made.encode(Q))
        learned = layer.to_quantizer().decode(layer.codes(T))
    searches = {"exact, float32": (P, Q), name: (P, after), LEARNED: (model.left_embeddings_, learned)}
    test, how = parts.test, {"seen": parts.train, "candidates": np.unique(parts.train.indices)}
    return {
        name: ranking_metrics(*tables, test, k=_DEPTHS, metrics=_MEASURES, each=True, **how)
        for name, tables in searches.items()
    }


def _make_layer(pairs: Interactions, n_bytes: int, dim: int, random_state: Seed) -> "nk.quantization.IndexingLayer":
    """An indexing layer of `n_bytes` per row: 256 centroids a byte, or 16 for half a byte if there are few rights.

    It starts after 8,192 rows; for a small table after three rounds of its pairs.
    """
    n_rights = pairs.shape[1]
    if n_rights < 16:
        raise ValueError(
            f"the table has {counted(n_rights, 'item')}; an index needs at least 16, use nearkin embed for vectors"
        )
    parts, n_centroids = _parts(n_bytes, n_rights)
    fitting = [str(size) for size in range(1, dim + 1) if dim % (parts // n_bytes * size) == 0]
    if str(n_bytes) not in fitting:
        why = ", of two parts each, as 256 centroids need more items" if n_centroids == 16 else ""
        way = f"give one of {', '.join(fitting)}" if fitting else "give an even dim"
        raise ValueError(f"n_bytes is {n_bytes}{why}: {parts} parts do not divide dim={dim}; {way}")
    return nk.quantization.IndexingLayer(
        dim, parts, n_centroids, buffer_size=min(_BUFFER, 3 * len(pairs)), random_state=random_state
    )


def _parts(n_bytes: int, n_rights: int) -> tuple[int, int]:
    return (2 * n_bytes, 16) if n_rights < 256 else (n_bytes, 256)
