"""`nearkin add`, `remove`, `update` and `check`: the vectors and the files of a saved folder."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.base import clone

import nearkin as nk
from nearkin._check import as_array, check_integer, check_output
from nearkin._exact import nearest_of_parts
from nearkin._fields import StrPath, counted
from nearkin._storage import (
    MANIFEST,
    Manifest,
    changing,
    one_version,
    read_config,
    read_manifest,
    replacing_folder,
    strangers,
)
from nearkin._types import ArrayLike, Record
from nearkin.contracts import Callback, Quantizer, ignore
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.identifiers import RowIds
from nearkin.index.searching import Scan, decoded_rows, normalised, rows_at_norms
from nearkin.jobs.evaluate import exact_metric
from nearkin.jobs.inputs import LEFT, check_typed, decoded
from nearkin.jobs.pairs import move_left
from nearkin.jobs.run import RUN, Steps, read_record, write_record
from nearkin.linalg.norms import widened
from nearkin.metrics.neighbours import ExactNeighbours
from nearkin.metrics.trial import mean_interval, paired_difference
from nearkin.quantization.best import TRAINED

_OF_VECTORS = ("distortion", "variance_kept", "recall_interval", "judged_by")  # and recall: of the vectors of a run


def change_rows(
    folder: StrPath,
    how: str,
    ids: Any = None,
    file: VectorFile | None = None,
    *,
    unknown: str = "raise",
    steps: Steps | None = None,
) -> Record:
    """Load, change and save an index, with the folder locked; returns the record to print.

    how: "add" the rows of a file, with `ids` if the index has ids; "remove" the vectors of ids; "update" them to the
    of a file; "upsert": those that the index has, and add the others. ValueError, and no change, for an unknown id. The
    evaluation of the old vectors is left out. With `unknown` "drop", "remove" counts unknown ids, "missing".
    """
    path, steps, missing = check_output(folder), steps or Steps(), 0
    metric = read_config(path, "index")["metric"]
    if file is not None:
        file.check_finite(metric=metric)
    with ExitStack() as locked:
        with steps.step("wait"):
            locked.enter_context(changing(path))
        with steps.step("load"):
            index = nk.Index.load(path)
            before = index.row_ids
        with steps.step(how) as callback:
            X = cast(VectorFile, file)  # None to remove
            if how in ("add", "upsert") and len(index) and (how == "upsert" or index.ids is not None):
                ids = None if ids is None else as_own(ids, index.ids)
            if how == "add":
                index.add(X, ids=ids, callback=callback)
            elif how == "upsert":
                index.upsert(X, ids, callback=callback)
            elif how == "update":
                index.update(as_own(ids, index.ids), X, callback=callback)
            else:
                check_typed(ids, before)
                gone = as_own(ids, index.ids)
                index.remove(gone, unknown=unknown)
                missing = len(gone) - (len(before) - len(index))
        with steps.step("save"):
            run = read_record(path, RUN)
            save_changed(path, index, before, None if run is None else run | {"vectors": len(index)})
    record = {"folder": str(folder), "vectors_before": len(before), "vectors": len(index), "missing": missing}
    return record | {"seconds": steps.seconds}


def save_changed(path: Path, index: nk.Index, before: np.ndarray, run: Record | None) -> None:
    """Replace the folder of an index by its changed state, with the left side of pairs and the record `run` less its
    figures of the old vectors.

    `before` (n,) are the ids that the vectors had, in the old order.
    """
    with replacing_folder(path, overwrite=True) as fresh:
        index.save(fresh)
        if run is not None:
            run = {name: value for name, value in run.items() if name not in _OF_VECTORS and "recall@" not in name}
            write_record(fresh / RUN, run | {"changed": True})
        if (path / LEFT).is_file():
            move_left(path, fresh, RowIds(index.ids, len(index)).positions(before))


def as_own(ids: ArrayLike, own: np.ndarray | None) -> np.ndarray:
    """Ids in the type of the index's ids `own`; numbers may be given as text."""
    given = as_array(ids, "ids")
    if given.dtype.kind == "U" and (own is None or own.dtype.kind != "U"):
        wrong = [text for text in given.tolist() if not text.lstrip("-").isdecimal()]
        if wrong:
            raise ValueError(f"id {wrong[0]!r} is no number, and the ids of this index are numbers")
        return given.astype(np.int64)
    return given.astype(str) if own is not None and own.dtype.kind == "U" else given


def check_folder(folder: StrPath, callback: Callback = ignore) -> Record:
    """Compare every file of a folder that nearkin saved with its manifest.

    Returns {"folder", "kind", "format_version", "files", "bytes", "damaged", "others"}: `damaged` has a line for each
    file that is missing or changed, `others` are files that the manifest does not list; for a whole index also
    "plain_faiss" and "codes", see `plain_faiss` and `of_codes`. `callback(files done, {"total": n})` is called after
    each file.
    """
    return one_version(folder, lambda path: _check(path, callback))


def _check(folder: Path, callback: Callback) -> Record:
    """The record of a folder with a config.json."""
    config, found = {}, list[str]()
    try:
        config = read_config(folder)
    except ValueError as error:
        if not (folder / MANIFEST).is_file():
            raise
        found.append(str(error))
    manifest = cast(Manifest, read_manifest(folder))
    damaged = []
    for done, name in enumerate(manifest.files, 1):
        try:
            manifest.verify(name)
        except ValueError as error:
            damaged.append(str(error))
        callback(done, {"total": len(manifest.files)})
    offered: Record = {}
    if manifest.kind == "index" and not damaged:
        try:  # the files may be whole and of two different indexes
            index = nk.Index.load(folder)
        except ValueError as error:
            damaged.append(str(error))
        else:
            offered |= {"plain_faiss": plain_faiss(index), "codes": of_codes(index)}
    return {
        "folder": str(folder), "kind": manifest.kind, "format_version": config.get("format_version"),
        "files": len(manifest.files), "bytes": sum(entry.bytes for entry in manifest.files.values()),
        "damaged": damaged or found, "others": strangers(folder), **offered,
    }  # fmt: skip


_ASKED, _COMPARED = 100, 10**7  # queries of FAISS alone, and vectors that it compares for all of them, at most


def plain_faiss(index: nk.Index, k: int = 10) -> Record:
    """What FAISS alone does with an index's `faiss_index`: its "codec" (the class), how it "compares" vectors, and the
    share of the index's first k results that it finds too, "same", for vectors of the index as "queries"."""
    of_faiss, ids, n = cast(Any, index.faiss_index), index.row_ids, len(index)
    if index.metric == "hamming":
        about = {"codec": type(of_faiss).__name__, "compares": "bits"}
    else:
        scan = Scan(of_faiss)
        about = {"codec": type(scan.inner).__name__, "compares": scan.compares}
    if index.metric == "hamming" or not n:
        return about | {"k": k, "queries": 0, "same": None}
    queries, k = min(n, max(1, min(_ASKED, _COMPARED // n))), min(k, n)
    Q = index.vectors(ids[np.linspace(0, n - 1, queries).astype(np.int64)])
    asked = np.ascontiguousarray(normalised(Q) if index.metric == "cosine" else Q, np.float32)
    found, theirs = index.search(Q, k)[1], of_faiss.search(asked, k)[1]
    same = [np.isin(ours, ids[own[own >= 0]]).mean() for ours, own in zip(found, theirs, strict=True)]
    return about | {"k": k, "queries": queries, "same": float(np.mean(same))}


_KS = (1, 10, 100)
_ROWS = 16_384  # decoded at a time


def of_codes(index: nk.Index) -> Record | None:
    """The recall of the first "k" results of a "search", and of its "codes", each of which is decoded and compared, for
    queries between two vectors: "of" the nearest kept vectors, without these of the nearest codes. None without codes
    of numbers."""
    n = len(index)
    if index.metric == "hamming" or index.quantizer is None or not n:
        return None
    scan, norms = Scan(cast(Any, index.faiss_index)), index.norms
    pairs = np.random.default_rng(0).integers(n, size=(2, max(1, min(_ASKED, _COMPARED // n))))
    Q = index.vectors(index.row_ids[pairs.ravel()]).reshape(*pairs.shape, -1).mean(axis=0)
    blocks = np.split(np.arange(n), range(_ROWS, n, _ROWS))

    def nearest(rows: Callable[[np.ndarray], np.ndarray], width: int) -> np.ndarray:
        parts = ((some, rows(some)) for some in blocks)
        return nearest_of_parts(parts, widened(Q, width), min(_KS[-1], n), index.metric)[1]

    if norms is None:
        codes = nearest(partial(decoded_rows, scan), index.n_features)
    else:
        codes = nearest(partial(rows_at_norms, scan, norms), index.n_features + 1)
    truth = codes if index.kept is None else nearest(index.kept.rows, index.n_features)
    answers = {
        "search": lambda k: RowIds(index.ids, n).positions(index.search(Q, k)[1]),
        "codes": lambda k: codes[:, :k],
    }
    recalls = {
        name: [float((of(k)[:, :, None] == truth[:, None, :k]).any(axis=2).mean()) for k in _KS]
        for name, of in answers.items()
    }
    return {"k": list(_KS), "of": "codes" if index.kept is None else "kept vectors", "queries": len(Q), **recalls}


MOST, FEWEST = 50_000, 100  # new rows that `watch` looks at
_QUERIES = 1_000
_LUCK = 0.005  # chance gain in recall of a second fit to similar rows


def watch(
    folder: StrPath, file: VectorFile, *, k: int = 10, random_state: int = 0, steps: Steps | None = None
) -> Record:
    """Measure the codes of a saved index on new vectors (n, d), and the gain of `refresh`: half of the vectors are
    trained from, the others are queries and neighbours.

    Returns the record to print: recall by the present codes, "now", and by codes trained "again", and the "gain",
    paired over the queries, each with its 95 % interval. It is a "drift" if the gain is above .005, the chance gain of
    a new fit, with 97.5 % confidence.
    """
    steps, index = steps or Steps(), nk.Index.load(folder)
    check_integer(k, "k", low=1)
    file.check_finite(metric=index.metric)
    if len(file) < FEWEST:
        raise ValueError(f"{file.name} has {counted(len(file), 'vector')}; give at least {FEWEST} to evaluate codes by")
    X = np.random.default_rng(random_state).permutation(file.sample(MOST, random_state))
    X = normalised(X) if index.metric == "cosine" else X
    q = min(_QUERIES, len(X) // 5)
    half = (len(X) - q) // 2
    Q, base, learned = X[:q], X[q : q + half], X[q + half :]
    again = _learned(index, _rows(index), VectorFile(file.name, array_rows(learned)), random_state, steps)
    truth = ExactNeighbours.of(base, Q, k, exact_metric(index))
    values = []
    for quantizer in (cast(Quantizer, index.quantizer), again):
        with steps.step("search"):
            found = nk.Index.build(base, quantizer, metric=index.metric, n_probe=index.n_probe).search(Q, k)[1]
            values.append(truth.recall(found))
    made: Record = {"gain": paired_difference(values[1], values[0])._asdict()}
    for name, recall in zip(("now", "again"), values, strict=True):
        low, high = mean_interval(recall)
        made[name] = {"mean": float(recall.mean()), "low": low, "high": high}
    about = {"index": str(folder), "data": file.name, "drift": made["gain"]["low"] > _LUCK}
    return about | {"k": truth.ids.shape[1], "rows": len(base), "queries": q} | made


def refresh(folder: StrPath, file: VectorFile, *, random_state: int = 0, steps: Steps | None = None) -> Record:
    """Train the codes of a saved index again, from its vectors and those of a file, and encode its vectors. Without
    kept vectors its vectors are decoded from the old codes. The rows of the file are not added. ValueError, and no
    change, for an index without codes, or of bits without vectors."""
    steps = steps or Steps()
    check_output(folder)
    file.check_finite(metric=read_config(folder, "index")["metric"])
    with ExitStack() as locked:
        with steps.step("wait"):
            locked.enter_context(changing(folder))
        index = nk.Index.load(folder)
        rows = _rows(index)
        quantizer = _learned(index, rows, file, random_state, steps)
        with steps.step("encode") as callback:
            index.recode(quantizer, rows, callback=callback)
        with steps.step("save"):
            run = read_record(folder, RUN) or {}
            run.pop("history", None)
            run |= {"train": f"{folder} and {file.name}", "seed": random_state}
            run["trained_on"] = min(len(rows) + len(file), TRAINED)
            save_changed(Path(folder), index, index.row_ids, run)
    exact = index.kept is not None
    return {"folder": str(folder), "vectors": len(index), "from_kept_vectors": exact, "seconds": steps.seconds}


def _rows(index: nk.Index) -> np.ndarray:
    """The rows (n, d) of an index, decoded where it keeps none."""
    if index.quantizer is None:
        raise ValueError("the index holds exact vectors, which no drift can spoil; there are no codes to train")
    if index.kept is not None:
        return index.kept.rows(np.arange(len(index)))
    return decoded(index)


def _learned(index: nk.Index, rows: np.ndarray, file: VectorFile, random_state: int, steps: Steps) -> Quantizer:
    """The index's quantizer fitted again, with the same settings, to its `rows` (n, d) and those of a file together."""
    numbers = np.random.default_rng(random_state)
    if file.shape[1] != index.n_features:
        raise ValueError(
            f"{file.name} has {counted(file.shape[1], 'column')}, and the index {index.n_features}; they must agree"
        )
    total = len(rows) + len(file)
    chosen = np.sort(numbers.choice(total, min(total, TRAINED), replace=False))
    old, new = rows[chosen[chosen < len(rows)]], file.take(chosen[chosen >= len(rows)] - len(rows))
    sample = numbers.permutation(np.concatenate([old, new]))
    quantizer = cast(Any, clone(index.quantizer))
    if "random_state" in quantizer.get_params():
        quantizer.set_params(random_state=random_state)
    with steps.step("train") as callback:
        return quantizer.fit(normalised(sample) if index.metric == "cosine" else sample, callback=callback)
