"""`nearkin update`: new vectors in place of old ones, or codes trained again for the vectors that come now."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.base import clone

import nearkin as nk
from nearkin._check import check_output
from nearkin._fields import StrPath, command, counted
from nearkin._storage import changing, read_config
from nearkin._types import Record
from nearkin.contracts import Quantizer
from nearkin.data import VectorFile
from nearkin.index.searching import normalised
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.change import change_rows, save_changed
from nearkin.jobs.inputs import decoded, open_file, open_given
from nearkin.jobs.run import RUN, Steps, read_record
from nearkin.quantization.best import TRAINED


def update(index: Folder, vectors: File, *, ids: File | None = None, retrain: bool = False, seed: int = 0) -> Record:
    """Replace the vectors of some ids by new ones, or train the codes of an index again.

    An unknown id is an error, and nothing changes. With `retrain` the quantizer is trained again on the vectors of the
    index and the new ones, and the vectors of the index are encoded again; the new ones are not added: `nearkin add`
    does that. Without kept vectors those of the index are decoded, and the error of the old codes remains. The folder
    is the old index or the new one at every moment. The old evaluation is removed.

    Examples:

    - nearkin update idx changed.npy --ids changed_ids.txt
    - nearkin update idx today.npy --retrain

    Parameters
    ----------
    index: The folder that `nearkin compress` wrote.
    vectors: The vectors, as `nearkin compress` reads them.
    ids: Ids, one a line: those of the vectors (.npy, .txt, .csv, .parquet; file.csv:column). [default: the ids that
        the vectors have, else row numbers]
    retrain: Train the quantizer again on the vectors of the index and these, and encode those of the index again.
    seed: Seed of everything random: the same seed gives the same result.
    """
    if retrain:
        if ids is not None:
            raise ValueError("ids are for vectors that replace others, and retrain changes none; leave one of them out")
        return train_again(index, open_file(vectors), seed) | {"next": [command("add", index, vectors)]}
    given = open_given(vectors, ids=ids)
    return change_rows(index, "update", given.ids, given.file) | {"understood": given.about}


def train_again(folder: StrPath, file: VectorFile, seed: int) -> Record:
    """Train the codes of a saved index again, from its vectors and those of a file, and encode its vectors. Without
    kept vectors its vectors are decoded from the old codes. The rows of the file are not added. ValueError, and no
    change, for an index without codes, or of bits without vectors."""
    steps = Steps()
    check_output(folder)
    file.check_finite(metric=read_config(folder, "index")["metric"])
    with ExitStack() as locked:
        with steps.step("wait"):
            locked.enter_context(changing(folder))
        index = nk.Index.load(folder)
        rows = rows_of(index)
        quantizer = trained(index, rows, file, seed, steps)
        with steps.step("encode") as callback:
            index.recode(quantizer, rows, callback=callback)
        with steps.step("save"):
            run = read_record(folder, RUN) or {}
            run.pop("history", None)
            run |= {"train": f"{folder} and {file.name}", "seed": seed}
            run["trained_on"] = min(len(rows) + len(file), TRAINED)
            save_changed(Path(folder), index, index.row_ids, run)
    source = "kept vectors" if index.kept is not None else "their old codes, whose error remains"
    return {"folder": str(folder), "vectors": len(index), "encoded_from": source, "seconds": steps.seconds}


def rows_of(index: nk.Index) -> np.ndarray:
    """The rows (n, d) of an index, decoded where it keeps none."""
    if index.quantizer is None:
        raise ValueError("the index holds exact vectors, which no drift can spoil; there are no codes to train")
    if index.kept is not None:
        return index.kept.rows(np.arange(len(index)))
    return decoded(index)


def trained(index: nk.Index, rows: np.ndarray, file: VectorFile, seed: int, steps: Steps) -> Quantizer:
    """The index's quantizer fitted again, with the same settings, to its `rows` (n, d) and those of a file together."""
    numbers = np.random.default_rng(seed)
    if file.shape[1] != index.n_features:
        columns = counted(file.shape[1], "column")
        raise ValueError(f"{file.name} has {columns}, and the index {index.n_features}; they must agree")
    total = len(rows) + len(file)
    chosen = np.sort(numbers.choice(total, min(total, TRAINED), replace=False))
    old, new = rows[chosen[chosen < len(rows)]], file.take(chosen[chosen >= len(rows)] - len(rows))
    sample = numbers.permutation(np.concatenate([old, new]))
    quantizer = cast(Any, clone(index.quantizer))
    if "random_state" in quantizer.get_params():
        quantizer.set_params(random_state=seed)
    with steps.step("train") as callback:
        return quantizer.fit(normalised(sample) if index.metric == "cosine" else sample, callback=callback)
