"""`nearkin watch` and `refresh`: whether an index's codes still suit the rows that arrive, and codes learned again."""

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.base import clone

from nearkin._check import check_integer
from nearkin._fields import counted
from nearkin._storage import changing, read_config
from nearkin._types import Record
from nearkin.contracts import BitCodes, Quantizer
from nearkin.data import VectorFile
from nearkin.data.formats.file_rows import array_rows
from nearkin.index.index import Index
from nearkin.index.searching import normalised
from nearkin.metrics.graded import Interval, paired_interval
from nearkin.pipeline.change import save_changed
from nearkin.pipeline.compress import TRAIN_ROWS
from nearkin.pipeline.evaluate import exact_metric, exact_neighbors
from nearkin.pipeline.inputs import decoded, ids_of
from nearkin.pipeline.run import RUN, Steps, read_record
from nearkin.pipeline.sweep_race import kept

MOST, FEWEST = 50_000, 100  # new rows that `watch` looks at
_QUERIES = 1_000
_LUCK = 0.005  # by which a second fit to rows of the same kind can be better
_OF_CODES = ("distortion", "variance_kept", "judged_by", "history")  # figures of a run that new codes do not have


class Drift(NamedTuple):
    """Neighbours that codes keep of new rows: the present ones, and those learned again with half of the new rows. A
    drift: the `gain`, paired over the queries, is above .005, what a fit gains by luck, with 97.5 % confidence."""

    k: int
    rows: int
    queries: int
    now: Interval
    again: Interval
    gain: Interval

    @property
    def drifted(self) -> bool:
        return self.gain.low > _LUCK

    def sentence(self) -> str:
        """The verdict in words, in points of recall."""
        mean, low, high = (f"{100 * value:+.1f}" for value in self.gain)
        word = "Drift" if self.drifted else "No drift found"
        return f"{word}: learning again changes the recall of new rows by {mean} points (95 %: {low} to {high})"

    def record(self) -> Record:
        """The figures for JSON."""
        return self._asdict() | {name: getattr(self, name)._asdict() for name in ("now", "again", "gain")}

    def rows_of_table(self) -> list[list[object]]:
        """A row for each of the codes: their share of neighbours kept and its interval."""
        return [
            [name, *(getattr(self, of))] for name, of in (("codes of the index", "now"), ("learned again", "again"))
        ]


def watch(
    folder: str | os.PathLike, file: VectorFile, *, k: int = 10, random_state: int = 0, steps: Steps | None = None
) -> Drift:
    """Judge the codes of a saved index by new rows (n, d) that it does not hold, and say what `refresh` would gain:
    half are learned from, the others judge. ValueError for an index without codes and for fewer than 100 rows."""
    steps, index = steps or Steps(), Index.load(folder)
    check_integer(k, "k", low=1)
    file.check_finite(metric=index.metric)
    if len(file) < FEWEST:
        raise ValueError(f"{file.name} has {counted(len(file), 'row')}; give at least {FEWEST} to judge codes by")
    X = np.random.default_rng(random_state).permutation(file.sample(MOST, random_state))
    X = normalised(X) if index.metric == "cosine" else X
    q = min(_QUERIES, len(X) // 5)
    half = (len(X) - q) // 2
    Q, base, learned = X[:q], X[q : q + half], X[q + half :]
    again = _learned(index, _rows(index), VectorFile(file.name, array_rows(learned)), random_state, steps)
    rows = VectorFile(file.name, array_rows(base))
    truth = exact_neighbors(rows, Q, min(k, len(base)), exact_metric(index))
    values = []
    for quantizer in (cast(Quantizer, index.quantizer), again):
        with steps.step("search"):
            found = Index.build(base, quantizer, metric=index.metric, n_probe=index.n_probe).search(Q, k)[1]
            values.append(kept(found, truth.beside(found), [1])[1])
    zero = np.zeros(q)
    now, then = (paired_interval(each, zero) for each in values)
    return Drift(truth.ids.shape[1], len(base), q, now, then, paired_interval(values[1], values[0]))


def refresh(
    folder: str | os.PathLike, file: VectorFile, *, random_state: int = 0, steps: Steps | None = None
) -> Record:
    """Learn the codes of a saved index again, from its rows and those of a file, and code its rows by them.

    Without kept vectors its rows are decoded from the old codes. The rows of the file are not added. ValueError, and no
    change, for an index without codes, or of bits without vectors.
    """
    steps = steps or Steps()
    file.check_finite(metric=read_config(folder, "index")["metric"])
    with ExitStack() as locked:
        with steps.step("wait"):
            locked.enter_context(changing(folder))
        index = Index.load(folder)
        rows = _rows(index)
        quantizer = _learned(index, rows, file, random_state, steps)
        with steps.step("encode") as callback:
            index.recode(quantizer, rows, callback=callback)
        with steps.step("save"):
            run = read_record(folder, RUN) or {}
            run = {name: value for name, value in run.items() if name not in _OF_CODES and "recall@" not in name}
            run |= {"train": f"{folder} and {file.name}", "seed": random_state}
            save_changed(Path(folder), index, ids_of(index), run)
    exact = index.kept is not None
    return {"folder": str(folder), "vectors": len(index), "from_kept_vectors": exact, "seconds": steps.seconds}


def _rows(index: Index) -> np.ndarray:
    """The rows (n, d) of an index, decoded where it keeps none."""
    if index.quantizer is None:
        raise ValueError("the index holds exact vectors, which no drift can spoil; there are no codes to learn")
    if index.kept is not None:
        return index.kept.rows(np.arange(len(index)))
    if isinstance(index.quantizer, BitCodes):
        raise ValueError("the index holds bits, from which no vectors can be read; compress with --keep-vectors")
    return decoded(index)


def _learned(index: Index, rows: np.ndarray, file: VectorFile, random_state: int, steps: Steps) -> Quantizer:
    """The index's quantizer fitted again, with the same settings, to its `rows` (n, d) and those of a file together."""
    numbers = np.random.default_rng(random_state)
    if file.shape[1] != index.n_features:
        raise ValueError(f"{file.name} has {file.shape[1]} columns, and the index {index.n_features}; they must agree")
    total = len(rows) + len(file)
    chosen = np.sort(numbers.choice(total, min(total, TRAIN_ROWS), replace=False))
    old, new = rows[chosen[chosen < len(rows)]], file.take(chosen[chosen >= len(rows)] - len(rows))
    sample = numbers.permutation(np.concatenate([old, new]))
    quantizer = cast(Any, clone(index.quantizer))
    if "random_state" in quantizer.get_params():
        quantizer.set_params(random_state=random_state)
    with steps.step("train") as callback:
        return quantizer.fit(normalised(sample) if index.metric == "cosine" else sample, callback=callback)
