"""Damaged files through every reader: a clean error, the same answer, or one that a slower reader gives too."""

import csv
import hashlib
import io
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nearkin as nk
from tests.faults.child import Fault
from tests.faults.mutate import damaged

Reader = Callable[[Path], Any]


def case(number: int, seed: int, folder: Path) -> str:
    """Damage one of the files, read it twice, and judge."""
    rng = random.Random(seed * 1_000_003 + number)
    files = originals()
    ending, data, reader = files[rng.randrange(len(files))]
    path = folder / f"damaged{ending}"
    found = damaged(data, [other for _, other, _ in files], rng)
    path.write_bytes(found)
    answer = digest(reader(path))
    if digest(reader(path)) != answer:
        raise Fault(f"{reader.__name__} of {ending}: two readings differ")
    if answer == _answer(ending, data, reader, folder):
        return "same"
    if ending in (".csv", ".tsv") and reader is nk.read_vectors:
        _check_vectors(path)
    if ending == ".npz" and not any(found.endswith(other) for _, other, _ in files):  # a whole archive behind bytes
        raise Fault(f"{reader.__name__}: an archive with checksums gives another answer")
    return "other"


@cache
def _answer(ending: str, data: bytes, reader: Reader, folder: Path) -> str:
    path = folder / f"whole{ending}"
    path.write_bytes(data)
    return digest(reader(path))


def digest(answer: Any) -> str:
    """A digest of arrays, and of records of arrays, by their values and types."""
    sha = hashlib.sha256()
    if isinstance(answer, nk.Interactions):
        answer = [answer.indptr, answer.indices, answer.weights, answer.left_ids, answer.right_ids, answer.timestamps]
    elif isinstance(answer, nk.Comparisons):
        answer = [answer.indices, answer.objects, answer.weights, answer.annotators]
    elif isinstance(answer, tuple):  # of features
        answer = [answer[0], getattr(answer[1], "toarray", lambda: answer[1])(), np.array(answer[2])]
    for array in answer if isinstance(answer, list) else [answer]:
        array = np.asarray("none" if array is None else array)
        array = np.array(array.tolist(), dtype=str) if array.dtype.kind == "O" else array
        sha.update(f"{array.dtype.kind}{array.shape}".encode() + array.tobytes())
    return sha.hexdigest()


def _check_vectors(path: Path) -> None:
    """Vectors are those that Python's csv module and `float` read: the columns of numbered names."""
    lines = [line for line in path.read_text(encoding="utf-8-sig").split("\n") if line.strip()]
    mark = next(mark for mark in "\t;|," if mark in lines[0])
    names, *rows = csv.reader(lines, delimiter=mark)
    numbers, found = np.array([_numbers(row) for row in rows], np.float32), nk.read_vectors(path)
    taken = [place for place, name in enumerate(names) if name.strip()[-1:].isdigit()]
    if not np.array_equal(found, numbers[:, taken]):
        raise Fault("the vectors are not those in the text")


def _numbers(row: list[str]) -> list[float]:
    """Cells as Python reads them; NaN for what is no number, and for 1_000, which is an id."""
    numbers = []
    for cell in row:
        try:
            numbers.append(np.nan if "_" in cell else float(cell.strip()))
        except ValueError:
            numbers.append(np.nan)
    return numbers


@cache
def originals() -> list[tuple[str, bytes, Reader]]:
    """Small files of every format: (ending, bytes, reader)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 4)).astype(np.float32)
    ids = np.array([f"u{i}" for i in range(9)])
    pairs = {"user": ids[[0, 0, 1, 2, 3, 4]], "item": np.array([3, 4, 3, 5, 2**40, 4]), "rating": np.arange(1.0, 7)}
    rows = rng.permuted(np.tile(np.arange(9), (20, 1)), axis=1)[:, :3]
    named = [["name", "x1", "x2"], *([f"u{n}", *row[:2]] for n, row in enumerate(X.tolist()))]
    found: list[tuple[str, bytes, Reader]] = [
        (".npy", _saved(np.save, X), nk.read_vectors),
        (".npy", _saved(np.save, np.asfortranarray(X.astype(np.float64))), nk.read_vectors),
        (".npz", _saved(np.savez, X=X), nk.read_vectors),
        (".npz", _saved(np.savez_compressed, X=np.repeat(X, 9, axis=0)), nk.read_vectors),
        (".fvecs", _vecs(X, "<f4"), nk.read_vectors),
        (".bvecs", _vecs(rng.integers(0, 255, (12, 5)), "u1"), nk.read_vectors),
        (".csv", _text([["f0", "f1", "f2", "f3"], *X.tolist()]), nk.read_vectors),
        (".tsv", _text(named, "\t"), nk.read_vectors),
        (".parquet", _parquet({"v": X.tolist()}), nk.read_vectors),
        (".parquet", _parquet({f"x{i}": X[:, i] for i in range(4)}), nk.read_vectors),
        (".parquet", _parquet({"v": X[:1].tolist()}, use_dictionary=False, store_schema=False), nk.read_vectors),
        (".ivecs", _vecs(rows, "<i4"), nk.data.read_neighbors),
        (".npy", _saved(np.save, rows), nk.data.read_neighbors),
        (".npy", _saved(np.save, ids), nk.data.read_column),
        (".npz", _saved(np.savez, ids=ids), nk.data.read_column),
        (".csv", _text([["id"], *([i] for i in ids)]), nk.data.read_column),
        (".parquet", _parquet({"id": ids}), nk.data.read_column),
        (".npz", _saved(np.savez_compressed, **pairs), nk.read_interactions),
        (".parquet", _parquet(pairs), nk.read_interactions),
        (".npz", _saved(np.savez, triplets=rows, objects=ids), nk.read_comparisons),
        (".csv", _text([["i", "j", "k"], *rows.tolist()]), nk.read_comparisons),
        (".csv", _text([["anchor", "near", "far"], *ids[rows].tolist()], ";"), nk.read_comparisons),
        (".parquet", _parquet(dict(zip("ijk", rows.T, strict=True))), nk.read_comparisons),
    ]
    table = [[name, *map(str, values)] for name, values in pairs.items()]
    for ending, mark in ((".csv", ","), (".csv", ";"), (".tsv", "\t")):
        found.append((ending, _text(list(zip(*table, strict=True)), mark), nk.read_interactions))
    features = [["item", "price", "kind"], ["3", "1.5", "a|b"], ["4", "2", "b"], ["5", "1e300", ""]]
    found.append((".csv", _text(features), nk.data.read_features))
    found.append((".parquet", _parquet({"item": [3, 4], "price": [1.5, 2.5]}), nk.data.read_features))
    return found


def _saved(save: Callable, *arrays: np.ndarray, **named: np.ndarray) -> bytes:
    file = io.BytesIO()
    save(file, *arrays, **named)
    return file.getvalue()


def _vecs(X: np.ndarray, dtype: str) -> bytes:
    return b"".join(np.array([len(row)], "<i4").tobytes() + row.astype(dtype).tobytes() for row in X)


def _text(rows: list, mark: str = ",") -> bytes:
    return "".join(mark.join(map(str, row)) + "\n" for row in rows).encode()


def _parquet(columns: dict, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, write_page_checksum=True, **options)
    return file.getvalue()
