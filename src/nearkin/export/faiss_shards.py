"""FAISS itself, over several files: shards can lie on separate disks or machines, the answers are the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import faiss
import numpy as np

from nearkin._check import check_integer
from nearkin._faiss import FaissIndex, add_codes, read_codes
from nearkin._fields import StrPath
from nearkin._storage import one_version, pack_ids, read_arrays, read_config, saving_folder, unpack_ids, write_arrays
from nearkin._types import Record
from nearkin.export.source import Source, inner_index
from nearkin.export.target import Callback, Target, Written, check_own_folder
from nearkin.index import Index
from nearkin.index.faiss_file import read_faiss, write_faiss
from nearkin.index.saved import load_quantizer

KIND = "faiss shards"
_BY_ID = 0  # FAISS's subset type: rows whose ids lie in a range


class FaissShards(Target):
    """A folder of `shards` files `shard-0000.faiss`, ..., runs of rows of nearly equal length.

    Every file is a FAISS index under the rows' positions in the whole; `open_shards` joins them by `IndexShards` or
    `IndexBinaryShards`, and adds the users' ids. Scores and ids are those of the unsharded index; only among rows of
    equal inner product may FAISS's merge name others. A folder that an earlier export wrote is replaced.
    """

    recall_target = 0.99  # 4-bit fast scan rounds, and so ties otherwise; everything else reaches 1

    def __init__(self, out: StrPath, shards: int = 2) -> None:
        self.out = Path(out)
        self.shards = check_integer(shards, "shards", low=1)
        check_own_folder(self.out, KIND)

    @contextmanager
    def writing(self, source: Source, callback: Callback) -> Iterator[Written]:
        index, n = source.index, len(source)
        check_integer(self.shards, "shards", low=1, high=n)
        bounds = [n * i // self.shards for i in range(self.shards + 1)]
        config = {"metric": index.metric, "n_features": index.n_features, "bounds": bounds}
        with saving_folder(self.out, KIND, config) as folder:
            for i, (first, last) in enumerate(pairwise(bounds)):
                write_faiss(_part(source, first, last), shard_file(folder, i))
                callback(last, {"total": n})
            if index.quantizer is not None:
                index.quantizer.save(folder / "quantizer")
            write_arrays(folder / "arrays.safetensors", {} if index.ids is None else pack_ids("row", index.ids))
            opened, size = open_shards(folder), sum(file.stat().st_size for file in folder.glob("shard-*.faiss"))
            facts: Record = {"out": str(self.out), "shards": self.shards, "bytes": size}
            yield Written(lambda asked, k: source.ids()[opened.faiss_index.search(asked, k)[1]], facts)


def shard_file(folder: Path, number: int) -> Path:
    """Where a shard lies."""
    return folder / f"shard-{number:04d}.faiss"


def open_shards(folder: StrPath) -> Index:
    """The shards in `folder` as one `Index`.

    Raises FileNotFoundError or ValueError for a folder or shard that is missing, damaged, or of another width or type.
    """
    return one_version(folder, _open)


def _open(folder: Path) -> Index:
    config = read_config(folder, KIND)
    d, metric, bounds = config["n_features"], config["metric"], config["bounds"]
    quantizer = load_quantizer(folder / "quantizer") if (folder / "quantizer").exists() else None
    whole = Index.empty(d, quantizer, metric)
    binary = metric == "hamming"
    kind: Any = faiss.IndexBinaryShards if binary else faiss.IndexShards
    shards = kind(whole.faiss_index.d, False, False)  # no threads; ids are kept, not counted on from shard to shard
    for i, (first, last) in enumerate(pairwise(bounds)):
        file, other = shard_file(folder, i), "it is of another export"
        if not file.exists():
            raise ValueError(f"{file} is missing; the folder has {len(bounds) - 1} shards, copy it again")
        shard = read_faiss(file, binary=binary, first_row=first)
        if shard.d != whole.faiss_index.d:
            raise ValueError(f"{file} has {shard.d} dimensions, the folder {whole.faiss_index.d}; {other}")
        if shard.ntotal != last - first:
            raise ValueError(f"{file} has {shard.ntotal} rows, config.json has {last - first}; {other}")
        shards.add_shard(shard)
    whole.faiss_index = shards
    arrays = read_arrays(folder / "arrays.safetensors")
    whole.ids = unpack_ids("row", arrays) if arrays else None
    return whole


def _part(source: Source, first: int, last: int) -> FaissIndex:
    """Rows first..last as an index under their positions."""
    index, positions = source.index, np.arange(first, last)
    inner = inner_index(index)
    if source.n_bits is not None:
        part = faiss.IndexBinaryIDMap2(faiss.IndexBinaryFlat(inner.d))
        part.add_with_ids(np.ascontiguousarray(source.codes[first:last]), positions)
        return part
    fast = isinstance(inner, faiss.IndexFastScan | faiss.IndexIVFFastScan)
    made = Index.empty(index.n_features, index.quantizer, index.metric, fast_scan=fast)
    empty = inner_index(made)
    if isinstance(inner, faiss.IndexIVF):
        empty.nprobe = inner.nprobe
        if isinstance(inner, faiss.IndexIVFFastScan) and isinstance(empty, faiss.IndexIVFFastScan):
            add_codes(empty, read_codes(inner, first, last), first)
        else:
            inner.copy_subset_to(empty, _BY_ID, first, last)  # ids are the positions already
        made.faiss_index.ntotal = empty.ntotal
        return made.faiss_index
    part = faiss.IndexIDMap(
        cast(faiss.Index, made.faiss_index)
    )  # a map wants an empty index: it is filled from here on
    if isinstance(inner, faiss.IndexFastScan) and isinstance(empty, faiss.IndexFastScan):
        add_codes(empty, read_codes(inner, first, last))
    else:
        codes = faiss.rev_swig_ptr(inner.codes.data(), len(source) * inner.code_size).reshape(len(source), -1)
        empty.add_sa_codes(np.ascontiguousarray(codes[first:last]))
    made.faiss_index.ntotal = part.ntotal = empty.ntotal
    faiss.copy_array_to_vector(positions, part.id_map)
    return part
