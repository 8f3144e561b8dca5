"""`nearkin check`: the files of a saved folder, and what an index loses by its fast paths."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

import nearkin as nk
from nearkin._exact import nearest_of_parts
from nearkin._storage import MANIFEST, Manifest, one_version, read_config, read_manifest, strangers
from nearkin._types import Record
from nearkin.contracts import Callback
from nearkin.index.identifiers import RowIds
from nearkin.index.parts import unlike
from nearkin.index.searching import Scan, normalised, rows_as_searched
from nearkin.jobs.arguments import Folder
from nearkin.jobs.run import Steps
from nearkin.linalg.norms import widened


def check(folder: Folder) -> Record:
    """Print the kind of a saved folder, and whether it is complete and unchanged.

    Every file is compared with the size and the checksums in the folder's manifest.json: "damaged" names those that are
    missing or changed, "others" those that the manifest does not list. The exit code is 1 for a damaged folder.

    Of an index it also prints what FAISS alone does with index.faiss ("plain_faiss"): how it compares vectors, and the
    share of this index's ten results that it finds, for up to 100 of its vectors; and the recall of a search next to
    that of its codes, each of which is compared ("codes"). A note names vectors added later that changed the mean
    error of the codes by more than a tenth.

    Example:

    - nearkin check idx

    Parameters
    ----------
    folder: A folder that nearkin saved: of any kind.
    """
    with Steps().step("check") as callback:
        return one_version(folder, lambda path: _check(path, callback))


def _check(folder: Path, callback: Callback) -> Record:
    """The record of a folder with a config.json."""
    config, found, notes = {}, list[str](), list[str]()
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
            notes = unlike(index.errors, index.faiss_index)
    return {
        "folder": str(folder), "kind": manifest.kind, "format_version": config.get("format_version"),
        "files": len(manifest.files), "bytes": sum(entry.bytes for entry in manifest.files.values()),
        "damaged": damaged or found, "others": strangers(folder), **offered,
        "passed": not (damaged or found), "notes": damaged or found or notes,
    }  # fmt: skip


_ASKED, _COMPARED = 100, 10**7  # queries of FAISS alone, and vectors that it compares for all of them, at most


def plain_faiss(index: nk.Index, k: int = 10) -> Record:
    """What FAISS alone does with an index's `faiss_index`: its "codec" (the class), how it "compares" vectors, and the
    share of the index's first k results that it finds too, "same", for vectors of the index as "queries"."""
    of_faiss, ids, n = cast(Any, index.faiss_index), index.row_ids, len(index)
    scan = None if index.metric == "hamming" else Scan(of_faiss)
    inner, compares = (scan.inner, scan.compares) if scan else (of_faiss, "bits")
    about = {"codec": type(inner).__name__, "compares": compares}
    if scan is None or not n:
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
    scan = Scan(cast(Any, index.faiss_index), index.norms)
    pairs = np.random.default_rng(0).integers(n, size=(2, max(1, min(_ASKED, _COMPARED // n))))
    # not halfway, where two vectors are equally near
    Q = np.average(index.vectors(index.row_ids[pairs.ravel()]).reshape(*pairs.shape, -1), axis=0, weights=(2, 1))
    Q = normalised(Q) if index.metric == "cosine" else Q
    blocks = np.split(np.arange(n), range(_ROWS, n, _ROWS))

    def nearest(rows: Callable[[np.ndarray], np.ndarray], width: int, metric: str) -> np.ndarray:
        parts = ((some, rows(some)) for some in blocks)
        return nearest_of_parts(parts, widened(Q, width), min(_KS[-1], n), metric)[1]

    codes = nearest(partial(rows_as_searched, scan), index.n_features + 1, scan.ranks_by(index.metric))
    kept, as_compared = index.kept, nk.export.Source(index).as_compared
    truth = codes if kept is None else nearest(lambda own: as_compared(kept.rows(own)), index.n_features, index.metric)
    own = RowIds(index.ids, n)
    answers = {"search": lambda k: own.positions(index.search(Q, k)[1]), "codes": lambda k: codes[:, :k]}
    recalls = {
        name: [float((of(k)[:, :, None] == truth[:, None, :k]).any(axis=2).mean()) for k in _KS]
        for name, of in answers.items()
    }
    return {"k": list(_KS), "of": "codes" if index.kept is None else "kept vectors", "queries": len(Q), **recalls}
