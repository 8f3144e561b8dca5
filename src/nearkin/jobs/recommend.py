"""`nearkin recommend` and `nearkin similar`: answers of a folder of pairs for some or all entities, block by block."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

import faiss
import numpy as np
import scipy.sparse as sp

import nearkin as nk
from nearkin._check import check_integer
from nearkin._fields import StrPath
from nearkin._pairs import number_ids
from nearkin._storage import read_config
from nearkin._types import ArrayLike, Fields, Record
from nearkin.index.identifiers import named
from nearkin.jobs import inputs
from nearkin.jobs.inputs import Sides, Unknown, find_ids, known_pairs
from nearkin.jobs.outputs import BECAUSE, Answers, check_ending, write_answers
from nearkin.jobs.run import RUN, Steps, read_record
from nearkin.metrics.ranking import recommend
from nearkin.records import Interactions

BLOCK = 16_384  # entities answered and written at a time


def recommend_folder(
    folder: StrPath,
    *,
    out: StrPath | None = None,
    left_ids: ArrayLike | None = None,
    history: Interactions | None = None,
    k: int = 10,
    candidates: ArrayLike | None = None,
    with_seen: bool = False,
    index: StrPath | None = None,
    explain: int | None = None,
    unknown: str = "raise",
    steps: Steps | None = None,
) -> tuple[Record, Answers | None]:
    """The k best items for users, without the items that they have unless `with_seen`: `nearkin recommend`.

    For the users `left_ids`, default all, or for new ones, folded in by their pairs `history`. Only `candidates` are
    returned, if they are given; `index`, a folder, ranks in place of the vectors; `explain` items of the history
    explain each result. Returns the record, and (users, scores, ids), None if they were written to the table `out`.
    """
    if out is not None:
        check_ending(out)
    if explain is not None and (index is not None or not inputs.holds_pairs(folder)):
        raise ValueError("--explain needs exact vectors: a folder of `nearkin embed` made of pairs, without --index")
    steps, k, others = steps or Steps(), check_integer(k, "k", low=1), Unknown.of(unknown)
    with steps.step("load"):
        sides = inputs.open_sides(folder, index)
        if history is not None:
            history = known_pairs(history, sides.right_ids, "right", sides.names.right, others)
            sides = _with_history(sides, folder, history)
        rows = np.arange(len(sides.left_ids))
        if left_ids is not None:
            rows = find_ids(left_ids, sides.left_ids, sides.names.left, others)
        allowed = None if candidates is None else find_ids(candidates, sides.right_ids, sides.names.right, others)
    right = sides.right_vectors() if allowed is not None else sides.right  # FAISS cannot search a part of the codes
    right = cast(faiss.Index, right.faiss_index) if isinstance(right, nk.Index) else right
    model = None if explain is None else nk.TwoTower.load(folder)
    seen = None if with_seen else sides.seen

    def answer(block: np.ndarray) -> Answers:
        scores, numbers = recommend(sides.left, right, k, seen=seen, users=block, candidates=allowed)
        answers = sides.left_ids[block], scores, named(numbers, sides.right_ids)
        return answers if model is None else (*answers, _because(model, sides.seen[block], answers[2], explain or 1))

    n_candidates = None if allowed is None else len(allowed)
    about = {"with_seen": with_seen, "candidates": n_candidates, "index": None if index is None else str(index)}
    about |= {"notes": others.notes}
    words = (sides.names.left, "rank", sides.names.right, "similarity")
    columns = words if len(set(words)) == len(words) else ("query", "rank", "id", "similarity")
    columns = columns if model is None else (*columns, BECAUSE)
    return _answer_in_blocks(folder, rows, answer, out, columns, steps, {"k": k, **about})


def _because(model: nk.TwoTower, history: sp.csr_matrix, ids: np.ndarray, n: int) -> np.ndarray:
    """(b, k) the known pairs, up to n, that raise the score of each result of these histories, as text."""
    if not history.nnz:
        return np.full(ids.shape, "")
    added, own = (part.reshape(-1, n) for part in model.explain(None, ids, n, history=history))
    texts = [", ".join(map(str, row[more > 0].tolist())) for row, more in zip(own, added, strict=True)]
    return np.array(texts).reshape(ids.shape)


def similar_folder(
    folder: StrPath,
    *,
    out: StrPath | None = None,
    ids: ArrayLike | None = None,
    k: int = 10,
    history: Interactions | None = None,
    unknown: str = "raise",
    steps: Steps | None = None,
) -> tuple[Record, Answers | None]:
    """The k entities that are most like each of `ids` (default: all), which are not their own answers: by cosine, for
    coordinates of comparisons by distance. Options as of `nearkin similar`."""
    if out is not None:
        check_ending(out)
    steps, k, others = steps or Steps(), check_integer(k, "k", low=1), Unknown.of(unknown)
    with steps.step("load"):
        given, (folder, side) = inputs.open_given(folder), inputs.split_side(folder)
        kind, words = read_config(folder)["kind"], inputs.side_names(folder)
        by_distance = kind == inputs.MAP
        word = "object" if by_distance else getattr(words, side or "right")
        X = given.file.read()
        own = np.arange(len(X)) if given.ids is None else given.ids
        new, names = X, own
        if history is not None:
            if not inputs.holds_pairs(folder):
                raise ValueError(f"new entities need a folder of `nearkin embed` made of pairs; {folder} is another")
            model, is_left = nk.TwoTower.load(folder), side == "left"
            partner, ids_known = ("right", model.right_ids_) if is_left else ("left", model.left_ids_)
            history = known_pairs(history, ids_known, partner, getattr(words, partner), others)
            new = model.embed_left(history) if is_left else model.embed_right(history)
            names = history.left_ids if is_left else history.right_ids
        rows = np.arange(len(names)) if ids is None else find_ids(ids, own, word, others)
    index = nk.Index.build(X - X.mean(axis=0) if by_distance else X, metric="l2" if by_distance else "cosine")

    def answer(block: np.ndarray) -> Answers:
        if history is not None:
            scores, numbers = index.search(new[block], k)
        else:
            scores, numbers = index.similar(block, min(k, max(1, len(X) - 1)))
        if by_distance:
            scores = np.linalg.norm(X[block][:, None] - X[numbers], axis=2)
        return names[block], scores, own[numbers]

    columns = (word, "rank", f"similar_{word}", "distance" if by_distance else "cosine_similarity")
    return _answer_in_blocks(folder, rows, answer, out, columns, steps, {"k": k, "notes": others.notes})


def _answer_in_blocks(
    folder: StrPath,
    rows: np.ndarray,
    answer: Callable[[np.ndarray], Answers],
    out: StrPath | None,
    columns: Sequence[str],
    steps: Steps,
    about: Fields,
) -> tuple[Record, Answers | None]:
    """Call `answer` with block after block of the rows; write the answers to a table, or return all of them."""
    answers = None
    with steps.step("answer") as callback:

        def blocks() -> Iterator[Answers]:
            for first in range(0, len(rows), BLOCK):
                yield answer(rows[first : first + BLOCK])
                callback(min(first + BLOCK, len(rows)), {"total": len(rows)})

        if out is not None:
            write_answers(out, blocks(), columns)
        else:
            answers = cast(Answers, tuple(np.concatenate(part) for part in zip(*blocks(), strict=True)))
    speed = len(rows) / max(steps.seconds["answer"], 1e-9)
    record = {"folder": str(folder), "out": None if out is None else str(out), "columns": list(columns)}
    return record | {"queries": len(rows), **about, "seconds": steps.seconds, "per_second": speed}, answers


def _with_history(sides: Sides, folder: StrPath, history: Interactions) -> Sides:
    """The same right side for new left entities, which are embedded from their pairs alone (fold-in, no training)."""
    if inputs.holds_pairs(folder):
        left = nk.TwoTower.load(folder).embed_left(history)
    else:
        from nearkin.embedding.two_tower.als import FittedLoss, Known, fold_in  # torch: only new entities need it
        from nearkin.embedding.two_tower.objective import AllPairs

        run, seen = read_record(folder, RUN) or {}, sides.seen
        if run.get("loss") != "all-pairs" or "omega" not in run:
            raise ValueError(f"{folder} cannot embed new entities: train it again with --loss all-pairs, the default")
        pairs = Interactions(seen.indptr, seen.indices, seen.data, sides.left_ids, sides.right_ids)
        known = Known(sides.right_ids, sides.right_vectors(), "right", np.ones(len(sides.right_ids)))
        loss = FittedLoss(AllPairs(), run["omega"], run["regularization"], pairs)
        left = fold_in(history, known, loss, None, None)  # as in training, with the decoded right vectors
    columns = number_ids(history.right_ids, sides.right_ids, "right")[0]
    places = history.rows, columns[history.indices]
    seen = sp.csr_matrix((history.weights, places), (len(left), len(sides.right_ids)))
    return replace(sides, left=left, left_ids=history.left_ids, seen=seen)
