"""The folder of `nearkin embed` on pairs: the model, run.json, and where they are asked for both sides as tables."""

import csv
import os
from pathlib import Path

import numpy as np

import nearkin as nk
from nearkin._check import check_choice
from nearkin._distributed import current
from nearkin._storage import replacing_folder
from nearkin._types import Fields
from nearkin.data.formats.parquet import import_pyarrow
from nearkin.pipeline.embedding_folder import Words
from nearkin.pipeline.folder import RUN, write_record
from nearkin.pipeline.left_side import neighbours_by_id

TABLES = (None, "csv", "parquet")
_EXAMPLES = 8  # the most frequent rights, in the report


def save_towers(
    model: "nk.TwoTower", out: str | os.PathLike, record: Fields, words: Words, tables: str | None = None
) -> None:
    """Write the model's folder with `record` as run.json; tables are left.csv and right.csv (or .parquet)."""
    check_choice(tables, "--tables", TABLES)
    if current().rank > 0:
        return
    popular = np.argsort(-np.bincount(model.seen_.indices, minlength=len(model.right_ids_)), kind="stable")[:_EXAMPLES]
    run = dict(record) | {
        "examples": neighbours_by_id(model.right_embeddings_, model.right_ids_, popular),
        "history": [{name: value for name, value in entry.items() if name != "total"} for entry in model.history_],
    }
    with replacing_folder(out) as fresh:
        model.save(fresh)
        write_record(fresh / RUN, run)
        if tables is not None:
            write_vectors(fresh / f"left.{tables}", words.left, model.left_ids_, model.left_embeddings_)
            write_vectors(fresh / f"right.{tables}", words.right, model.right_ids_, model.right_embeddings_)


def write_vectors(path: Path, word: str, ids: np.ndarray, X: np.ndarray) -> None:
    """A table of ids, under the name `word`, and vectors (n, k), as the columns x1, ..., xk: .csv or .parquet."""
    names = [word if word != "x1" else "id", *(f"x{c + 1}" for c in range(X.shape[1]))]
    if path.suffix == ".parquet":
        pa, parquet = import_pyarrow()
        parquet.write_table(pa.table(dict(zip(names, [ids, *X.T], strict=True))), path)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([name, *row] for name, row in zip(ids.tolist(), X.tolist(), strict=True))
