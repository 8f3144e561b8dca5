"""`nearkin recommend`: the best items for some or all users of a folder of pairs, block by block."""

from dataclasses import replace
from typing import cast

import faiss
import numpy as np
import scipy.sparse as sp

import nearkin as nk
from nearkin._check import check_integer
from nearkin._fields import StrPath
from nearkin._pairs import number_ids
from nearkin._types import Record
from nearkin.data import read_column
from nearkin.index.identifiers import named
from nearkin.jobs import inputs
from nearkin.jobs.arguments import File, Folder, Names
from nearkin.jobs.inputs import Sides, Unknown, find_ids, known_pairs
from nearkin.jobs.outputs import ANSWER_ENDINGS, BECAUSE, Answers, answer_in_blocks, check_file
from nearkin.jobs.run import RUN, Steps, read_record
from nearkin.metrics import ranking
from nearkin.records import Interactions


def recommend(
    folder: Folder,
    names: Names | None = None,
    *,
    all_: bool = False,
    left_ids: File | None = None,
    history: File | None = None,
    k: int = 10,
    candidates: File | None = None,
    with_seen: bool = False,
    explain: int | None = None,
    unknown: str = "raise",
    missing: str = "raise",
    out: File | None = None,
    overwrite: bool = False,
) -> Record:
    """Recommend the best matches for one, some or all ids, without known pairs.

    For a folder of `nearkin embed` made of pairs, or of `nearkin train`. Ids and columns are those of the table.

    Examples:

    - nearkin recommend emb --all --out recs.parquet
    - nearkin recommend emb u17 u18 -k 5 --explain 3
    - nearkin recommend emb --left-ids vips.txt --candidates in_stock.csv --out recs.csv
    - nearkin recommend emb --history new_users.csv --unknown drop --out recs.csv

    Parameters
    ----------
    folder: The folder that `nearkin embed` or `nearkin train` wrote.
    names: Ids to recommend to, as in the table of pairs.
    all_: All ids that the folder has.
    left_ids: Recommend to the ids in this file, one a line.
    history: A table of pairs of new entities, in the columns of the first table: results for them.
    k: Neighbours of each query.
    candidates: Recommend these ids only (in stock, in season), one a line.
    with_seen: Pairs of the training table may be results too.
    explain: Column because_of: up to this many known pairs of the id that add most to each result's score.
    unknown: Ids that the folder lacks: raise an error, or drop and count them.
    missing: What to do with pairs or answers that lack a cell: raise an error, or drop and count them.
    out: File to write: the results, .parquet, .csv, .tsv or .npz.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    if sum((bool(names), all_, left_ids is not None, history is not None)) != 1:
        raise ValueError(
            "say who to recommend to: ids behind the folder, or one of all_=True, left_ids=..., history=..."
        )
    check_file(out, overwrite, [folder, left_ids, history, candidates], ANSWER_ENDINGS)
    newcomers = None if history is None else inputs.read_history(history, folder, missing)
    wanted = names or (None if left_ids is None else read_column(left_ids))
    if explain is not None and not inputs.holds_pairs(folder):
        raise ValueError("explain needs exact vectors: a folder of `nearkin embed` made of pairs")
    steps, k, others = Steps(), check_integer(k, "k", low=1), Unknown.of(unknown)
    with steps.step("load"):
        sides = inputs.open_sides(folder)
        if newcomers is not None:
            newcomers = known_pairs(newcomers, sides.right_ids, "right", sides.names.right, others)
            sides = _with_history(sides, folder, newcomers)
        rows = np.arange(len(sides.left_ids))
        if wanted is not None:
            rows = find_ids(wanted, sides.left_ids, sides.names.left, others)
        allowed = None
        if candidates is not None:
            allowed = find_ids(read_column(candidates), sides.right_ids, sides.names.right, others)
    right = sides.right_vectors() if allowed is not None else sides.right  # FAISS cannot search a part of the codes
    right = cast(faiss.Index, right.faiss_index) if isinstance(right, nk.Index) else right
    model = None if explain is None else nk.TwoTower.load(folder)
    seen, most = None if with_seen else sides.seen, min(k, len(sides.right_ids))

    def answer(block: np.ndarray) -> Answers:
        scores, numbers = ranking.recommend(sides.left, right, most, seen=seen, users=block, candidates=allowed)
        answers = sides.left_ids[block], scores, named(numbers, sides.right_ids)
        return answers if model is None else (*answers, _because(model, sides.seen[block], answers[2], explain or 1))

    words = (sides.names.left, "rank", sides.names.right, "similarity")
    columns = words if len(set(words)) == len(words) else ("query", "rank", "id", "similarity")
    columns = columns if model is None else (*columns, BECAUSE)
    about = {
        "folder": str(folder), "k": k, "with_seen": with_seen, "candidates": None if allowed is None else len(allowed),
        "understood": None if newcomers is None else newcomers.source and str(newcomers.source),
        "notes": others.notes,
    }  # fmt: skip
    return answer_in_blocks(rows, answer, out, columns, steps, about)


def _because(model: nk.TwoTower, history: sp.csr_matrix, ids: np.ndarray, n: int) -> np.ndarray:
    """(b, k) the known pairs, up to n, that raise the score of each result of these histories, as text."""
    if not history.nnz:
        return np.full(ids.shape, "")
    added, own = (part.reshape(-1, n) for part in model.explain(None, ids, n, history=history))
    texts = [", ".join(map(str, row[more > 0].tolist())) for row, more in zip(own, added, strict=True)]
    return np.array(texts).reshape(ids.shape)


def _with_history(sides: Sides, folder: StrPath, history: Interactions) -> Sides:
    """The same right side for new left entities, which are embedded from their pairs alone (fold-in, no training)."""
    if inputs.holds_pairs(folder):
        left = nk.TwoTower.load(folder).embed_left(history)
    else:
        from nearkin.embedding.two_tower.als import FittedLoss, Known, fold_in  # torch: only new entities need it
        from nearkin.embedding.two_tower.objective import AllPairs

        run, seen = read_record(folder, RUN) or {}, sides.seen
        if run.get("loss") != "all-pairs" or "omega" not in run:
            raise ValueError(f"{folder} cannot embed new entities: train it again with loss='all-pairs'")
        pairs = Interactions(seen.indptr, seen.indices, seen.data, sides.left_ids, sides.right_ids)
        known = Known(sides.right_ids, sides.right_vectors(), "right", np.ones(len(sides.right_ids)))
        loss = FittedLoss(AllPairs(), run["omega"], run["regularization"], pairs)
        left = fold_in(history, known, loss, None, None)  # as in training, with the decoded right vectors
    places = history.rows, number_ids(history.right_ids, sides.right_ids, "right")[0][history.indices]
    seen = sp.csr_matrix((history.weights, places), (len(left), len(sides.right_ids)))
    return replace(sides, left=left, left_ids=history.left_ids, seen=seen)
