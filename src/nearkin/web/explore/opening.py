"""From folders and files to the rows that a page shows."""

import os
from pathlib import Path

import numpy as np

from nearkin.data import open_vectors
from nearkin.index import Index
from nearkin.index.rescoring import KeptVectors
from nearkin.pipeline.embedding_folder import decoded, open_index
from nearkin.pipeline.left_side import LeftSide, read_left
from nearkin.web.explore.beside import read_pictures, read_values
from nearkin.web.explore.coded import Coded
from nearkin.web.explore.collection import Beside, Collection, second


def open_collection(
    folder: str | os.PathLike,
    *,
    vectors: str | None = None,
    labels: str | None = None,
    texts: str | None = None,
    images: str | None = None,
    ids_column: str | None = None,
    compare: str | os.PathLike | None = None,
    k: int = 10,
) -> Collection:
    """The rows of a saved index, with what lies beside them, and a second index over the same rows to compare with.

    A folder of vectors (`nearkin embed`) is an index that searches all of them exactly.

    vectors: the exact rows in the order of the index, for one that keeps none. labels, texts: files of one value a row,
    or with `ids_column` tables that name their rows. images: as in `read_pictures`. ValueError where they do not fit.
    """
    index = open_index(folder)
    other = None if compare is None else open_index(compare)
    rows = None if vectors is None else _vectors(vectors, index)
    ids = list(map(str, range(len(index)) if index.ids is None else index.ids.tolist()))
    beside = Beside(
        labels=None if labels is None else read_values(labels, ids, ids_column, "label"),
        texts=None if texts is None else read_values(texts, ids, ids_column, "text"),
        pictures=None if images is None else read_pictures(images, ids),
    )
    name = Path(folder).resolve().name
    name_of_other = "" if compare is None else Path(compare).resolve().name
    if name == name_of_other:
        name, name_of_other = str(folder), str(compare)
    return collect_rows(index, rows, beside, other=other, names=(name, name_of_other), k=k, left=read_left(folder))


def collect_rows(
    index: Index,
    vectors: np.ndarray | None = None,
    beside: Beside | None = None,
    *,
    other: Index | None = None,
    names: tuple[str, str] = ("index", "other"),
    k: int = 10,
    left: LeftSide | None = None,
) -> Collection:
    """The rows of an index; `vectors` (n, d) are the exact ones where it keeps none, `other` is compared with it.

    ValueError for an index without rows, and for vectors of another shape.
    """
    if not len(index):
        raise ValueError("the index has no rows; add some first")
    if vectors is not None and vectors.shape != (len(index), index.n_features):
        raise ValueError(
            f"vectors have shape {vectors.shape}, the index has {(len(index), index.n_features)}; give the vectors it "
            "was made of, in their order"
        )
    if vectors is None and index.kept is None and index.quantizer is None:
        vectors = decoded(index)  # an exact index holds the rows themselves
    kept = index.kept if vectors is None else KeptVectors([vectors])
    coded = [Coded(names[0], index, kept)]
    if other is not None:
        coded.append(second(names[1], other, index, kept))
    return Collection(coded, index.ids, kept, beside or Beside(), k, left)


def _vectors(path: str, index: Index) -> np.ndarray:
    file = open_vectors(path)
    if len(file) != len(index):
        raise ValueError(f"{path} has {len(file)} rows and the index {len(index)}; give the vectors it was made of")
    file.check_finite()
    return file.read()
