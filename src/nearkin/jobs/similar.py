"""`nearkin similar`: the entities that are most like some or all of a folder, block by block."""

import numpy as np

import nearkin as nk
from nearkin._check import check_integer
from nearkin._storage import read_config
from nearkin._types import Record
from nearkin.jobs import inputs
from nearkin.jobs.arguments import File, Folder, Names
from nearkin.jobs.outputs import ANSWER_ENDINGS, Answers, answer_in_blocks, check_file
from nearkin.jobs.run import Steps


def similar(
    folder: Folder,
    names: Names | None = None,
    *,
    all_: bool = False,
    k: int = 10,
    unknown: str = "raise",
    out: File | None = None,
    overwrite: bool = False,
) -> Record:
    """Find the most similar entities of some ids, or of all, which are not their own results.

    Pairs: the right side by cosine ("who took this also takes"); EMB:left finds similar people. Comparisons: the
    objects at the smallest distance. An index of other vectors: by its metric, codes decoded.

    Examples:

    - nearkin similar emb i42
    - nearkin similar emb --all -k 20 --out similar.parquet
    - nearkin similar map lisbon

    Parameters
    ----------
    folder: The folder that `nearkin embed` or `nearkin train` wrote.
    names: Ids to find similar ones of, as in the table.
    all_: All ids that the folder has.
    k: Neighbours of each query.
    unknown: Ids that the folder lacks: raise an error, or drop and count them.
    out: File to write: the results, .parquet, .csv, .tsv or .npz.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    if bool(names) == all_:
        raise ValueError("say what to find similar ones of: ids behind the folder, or all_=True")
    check_file(out, overwrite, [folder], ANSWER_ENDINGS)
    steps, k, others = Steps(), check_integer(k, "k", low=1), inputs.Unknown.of(unknown)
    with steps.step("load"):
        given, (place, side) = inputs.open_given(folder), inputs.split_side(folder)
        is_map = read_config(place)["kind"] == inputs.MAP
        of_pairs = inputs.holds_pairs(place) or (place / inputs.LEFT).is_file()
        word = getattr(inputs.side_names(place), side or "right") if of_pairs else "object" if is_map else "id"
        metric = "cosine" if of_pairs else given.metric or "l2"
        X = given.file.read()
        own = np.arange(len(X)) if given.ids is None else given.ids
        rows = np.arange(len(own)) if not names else inputs.find_ids(names, own, word, others)
    index = nk.Index.build(X - X.mean(axis=0) if metric == "l2" else X, metric=metric)

    def answer(block: np.ndarray) -> Answers:
        scores, numbers = index.similar(block, min(k, max(1, len(X) - 1)))
        if metric == "l2":
            scores = np.linalg.norm(X[block][:, None] - X[numbers], axis=2)
        return own[block], scores, own[numbers]

    score = {"l2": "distance", "ip": "similarity", "cosine": "cosine_similarity"}[metric]
    columns = (word, "rank", f"similar_{word}", score)
    about = {"folder": str(folder), "k": k, "notes": others.notes}
    return answer_in_blocks(rows, answer, out, columns, steps, about)
