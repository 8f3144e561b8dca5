"""`nearkin watch`: whether training again would raise the recall for the vectors that come now."""

from typing import cast

import numpy as np

import nearkin as nk
from nearkin._check import check_integer
from nearkin._fields import command, counted
from nearkin._types import Record
from nearkin.contracts import Quantizer
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.searching import normalised
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.evaluate import exact_metric
from nearkin.jobs.inputs import open_given, places_of
from nearkin.jobs.run import Steps
from nearkin.jobs.update import rows_of, trained
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.metrics.trial import mean_interval, paired_difference

MOST, FEWEST = 50_000, 100  # new rows that `watch` looks at
_QUERIES = 1_000
_LUCK = 0.005  # chance gain in recall of a second fit to similar rows


def watch(index: Folder, vectors: File, *, k: int = 10, seed: int = 0) -> Record:
    """Test whether training again, as `nearkin update --retrain` does, would raise the recall for new vectors.

    A second quantizer is trained on half of the new vectors and those of the index; the other half measures the recall
    of both, "now" and "again", without rescoring. It is a drift if the "gain", paired over the queries, is above .005,
    the chance gain of a new fit, with 97.5 % confidence. The index is not changed. Give vectors that it does not hold.
    The exit code is 1 for a drift.

    Examples:

    - nearkin watch idx today.npy
    - nearkin watch idx today.parquet -k 100 --json

    Parameters
    ----------
    index: The folder that `nearkin compress` wrote.
    vectors: The vectors, as `nearkin compress` reads them.
    k: Neighbours of each query.
    seed: Seed of everything random: the same seed gives the same result.
    """
    steps, loaded, given = Steps(), nk.Index.load(index), open_given(vectors)
    check_integer(k, "k", low=1)
    file, held = given.file, 0 if given.ids is None else int((places_of(given.ids, loaded.row_ids) >= 0).sum())
    file.check_finite(metric=loaded.metric)
    if len(file) < FEWEST:
        raise ValueError(f"{file.name} has {counted(len(file), 'vector')}; give at least {FEWEST} to evaluate codes by")
    X = np.random.default_rng(seed).permutation(file.sample(MOST, seed))
    X = normalised(X) if loaded.metric == "cosine" else X
    q = min(_QUERIES, len(X) // 5)
    half = (len(X) - q) // 2
    Q, base, learned = X[:q], X[q : q + half], X[q + half :]
    again = trained(loaded, rows_of(loaded), VectorFile(file.name, array_rows(learned)), seed, steps)
    truth = ExactNeighbours.of(base, Q, k, exact_metric(loaded))
    values = []
    for quantizer in (cast(Quantizer, loaded.quantizer), again):
        with steps.step("search"):
            found = nk.Index.build(base, quantizer, metric=loaded.metric, n_probe=loaded.n_probe).search(Q, k)[1]
            values.append(truth.recall(found))
    made: Record = {"gain": paired_difference(values[1], values[0])._asdict()}
    for name, recall in zip(("now", "again"), values, strict=True):
        low, high = mean_interval(recall)
        made[name] = {"mean": float(recall.mean()), "low": low, "high": high}
    drift = made["gain"]["low"] > _LUCK
    mended = command("update", index, vectors, retrain=True)
    notes = [f"the new vectors drift: training again raises their recall; {mended}"] * drift
    notes += [f"the index holds {counted(held, 'id')} of {file.name}; give vectors that it does not hold"] * (held > 0)
    return {
        "index": str(index), "data": file.name, "drift": drift, "k": truth.ids.shape[1], "rows": len(base),
        "queries": q, **made, "passed": not drift, "notes": notes, "understood": given.about,
    }  # fmt: skip
