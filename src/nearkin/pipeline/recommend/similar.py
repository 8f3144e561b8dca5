"""What is like what: the nearest neighbours of rows among themselves, by cosine, a block at a time."""

import os

import numpy as np
import scipy.sparse as sp

import nearkin as nk
from nearkin._check import check_integer
from nearkin._storage import read_config
from nearkin._types import ArrayLike, Record
from nearkin.embedding import saved_towers
from nearkin.index.rescoring import normalised
from nearkin.metrics.ranking import recommend
from nearkin.pipeline.embedding_folder import MAP, open_given, words_of
from nearkin.pipeline.hits import check_hits_path
from nearkin.pipeline.recommend.recommend import Answer, Table, answer_blocks
from nearkin.pipeline.recommend.sides import numbers_of
from nearkin.pipeline.steps import Steps
from nearkin.records import Interactions


def similar_folder(
    folder: str | os.PathLike,
    *,
    out: str | os.PathLike | None = None,
    ids: ArrayLike | None = None,
    k: int = 10,
    side: str | None = None,
    history: Interactions | None = None,
    formulas_as_text: bool = False,
    steps: Steps | None = None,
) -> tuple[Record, Answer | None]:
    """The k entities of one side that are most like each of `ids` (default: all of them), itself left out.

    Pairs: by cosine, on the right side unless `side` is "left". Coordinates of comparisons: by distance, whose square
    is then the score, smaller is nearer. `history` are pairs of new entities of that side, whose likes are then found
    (fold-in, no training). To the table `out`, or returned beside the record to print.
    """
    steps, k = steps or Steps(), check_integer(k, "k", low=1)
    if out is not None:
        check_hits_path(out)
    with steps.step("load"):
        given = open_given(folder, side)
        words, own = words_of(folder), given.ids
        by_distance = read_config(folder)["kind"] == MAP
        word = "object" if by_distance else words.left if side == "left" else words.right
        X = given.file.read()
        own = np.arange(len(X)) if own is None else own
        new, names = (X, own) if history is None else _folded(folder, side or "right", history)
        rows = np.arange(len(names)) if ids is None else numbers_of(ids, own, word)
    columns = (word, "rank", f"similar_{word}", "distance" if by_distance else "cosine")
    left, right = _lifted(X) if by_distance else (normalised(new), normalised(X))
    itself = None if history is not None else sp.csr_matrix((np.ones(len(X), np.float32), (np.arange(len(X)),) * 2))

    def ask(block: np.ndarray) -> Answer:
        scores, numbers = recommend(left, right, k, seen=itself, rows=block)
        if by_distance:
            apart = np.linalg.norm(X[block][:, None] - X[numbers], axis=2)
            scores = np.where(numbers < 0, np.inf, apart).astype(np.float32)
        return names[block], scores, own[numbers]

    answers = answer_blocks(rows, ask, Table(out, columns, formulas_as_text), steps, "similar")
    record = {
        "folder": str(folder), "out": None if out is None else str(out), "columns": list(columns), "queries": len(rows),
        "k": k, "seconds": steps.seconds, "per_second": len(rows) / max(steps.seconds["similar"], 1e-9),
    }  # fmt: skip
    return record, answers


def _folded(folder: str | os.PathLike, side: str, history: Interactions) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (b, d) of new entities of a side by their pairs, and their ids."""
    if read_config(folder)["kind"] != saved_towers.KIND:
        raise ValueError(f"newcomers are placed in a folder of `nearkin embed` made of pairs; {folder} is another")
    model = nk.TwoTower.load(folder)
    if side == "left":
        return model.embed_left(history), history.left_ids
    return model.embed_right(history), history.right_ids


def _lifted(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with one more column, so that 2 x . y - |y|^2, largest where y is nearest, is an inner product."""
    X = X - X.mean(axis=0)
    ones = np.ones((len(X), 1), np.float32)
    return np.hstack([2 * X, ones]), np.hstack([X, -(X**2).sum(axis=1, keepdims=True)])
