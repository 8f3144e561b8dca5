"""`nearkin embed` and `nearkin train` on a table of pairs: vectors of both sides, or an index trained with them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import nearkin as nk
from nearkin import _storage
from nearkin._distributed import current
from nearkin._exact import nearest
from nearkin._fields import StrPath, counted
from nearkin._types import Fields, Record, Seed
from nearkin.data import Parts
from nearkin.jobs.inputs import LEFT, SideNames, Unknown, known_pairs, read_as
from nearkin.jobs.run import RUN, Steps, write_record
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics.ranking import list_metrics, ranking_metrics
from nearkin.metrics.retrieval import without_self
from nearkin.metrics.trial import paired_difference
from nearkin.records import Interactions

SPLITS = ("random", "time", "leave-last-out", "none")
_HELD_OUT = 0.1  # share of the pairs, for a table without a split
MOST_WORK = 3e9  # products, half a minute; a baseline with more is left out
REGRESSION = 3e4  # products that take as long as the regression of an item
EXAMPLES = 8  # right entities with most pairs, whose neighbours the report shows
RESULT, BEFORE, PLAIN = "two towers", "two towers before", "two towers without features"  # among the baselines
LEARNED = "trained with the towers"  # an index
_CUTS, _RANKED, _SHOWN = (20, 100), ("recall", "ndcg", "mrr"), ("recall@20", "ndcg@20", "ndcg@100", "mrr@100")
Quality: TypeAlias = dict[str, dict[str, float]]  # of each ranking, its measures
Values: TypeAlias = dict[str, dict[str, np.ndarray]]  # the same for each left entity with test pairs, by its id
COMPARED = "ndcg@100"  # the measure of the differences between rankings


def embed_pairs(
    path: StrPath,
    *,
    out: StrPath,
    split: str | None = None,
    dim: int | None = None,
    loss: str | None = None,
    start: StrPath | None = None,
    seed: int | None = 0,
    overwrite: bool = False,
    **columns: Any,
) -> Record:
    """Embed both sides of a table of pairs and save the model in the folder `out`.

    A first fit without a tenth of the pairs is measured on them, next to `judge_baselines`; the saved model is
    then fitted on all pairs with the same settings. `split` is one of `SPLITS` or a column; "none" skips the
    measurement. With `start`, the folder of a model, it is measured on the tenth before and after training with the
    other pairs. `columns` are the other options of `nearkin.read_interactions`.

    Returns what is printed, and saved as run.json.
    """
    began, steps = time.perf_counter(), Steps()
    own = start is not None and Path(start).resolve() == Path(out).resolve()  # the folder is changed in place
    overwrite = overwrite or own
    _storage.check_target(out, overwrite, [path] if start is None or own else [path, start])
    columns["split"] = None if split in SPLITS else split
    pairs, options = read_as(path, start, columns)
    names = SideNames.of(options["words"])
    if start is not None:
        model, judged, notes = _trained_further(pairs, start, dim, split, names, steps)
        notes += [
            f"{counted(len(pairs), 'pair')} of the table join those of {start}: "
            f"{counted(len(model.seen_), 'different pair')} in all"
        ]
    else:
        model, notes = nk.TwoTower(dim or 64, loss=loss or "auto", random_state=seed), list[str]()
        judged, kept = fit_and_judge(model, pairs, split, lambda parts: _judge_towers(model, parts), steps)
        judged["quality"] = _shown(judged["quality"])
        if len(kept) != len(pairs):
            notes = [f"{len(kept):,} of {len(pairs):,} pairs are trained on; the others are validation and test"]
    record = {
        "out": str(out), "data": str(path), "left": model.seen_.shape[0], "right": model.seen_.shape[1],
        "pairs": len(pairs), "learned_from": len(model.seen_), "dim": model.left_embeddings_.shape[1],
        "solver": model.solver_, "loss": model.loss_.name, **judged, "omega": model.omega_,
        "regularization": model.regularization_, "steps": len(model.history_),
        "start": None if start is None else str(start), "seconds": time.perf_counter() - began, **options,
        "notes": [*held_out_in_words(judged["held_out"], names.left), *judged["notes"], *notes],
        **judged["quality"].get(RESULT, {}),
        "understood": None if pairs.source is None else str(pairs.source),
    }  # fmt: skip
    if current().rank == 0:
        with _storage.replacing_folder(out, overwrite) as fresh:
            model.save(fresh)
            write_record(fresh / RUN, record | for_report(model, model.right_embeddings_, model.seen_))
    return record


def evaluate_pairs(folder: StrPath, path: StrPath, missing: str = "raise") -> Record:
    """Measure the model in a folder on a table of unseen pairs; returns the record to print."""
    pairs, options = read_as(path, folder, {"missing": missing})
    names = SideNames.of(options["words"])
    values, about, notes = _judge_later({RESULT: nk.TwoTower.load(folder)}, pairs, names)
    if not values:
        raise ValueError(f"{path} has no pair to evaluate {folder} by: {'; '.join(notes)}; give later pairs")
    return {
        "index": str(folder), "data": str(path), "quality": _shown(means(values)), "differences": differences(values),
        "held_out": about, "notes": [*notes, *held_out_in_words(about, names.left)],
        "understood": None if pairs.source is None else str(pairs.source),
    }  # fmt: skip


def _split(pairs: Interactions, how: str, seed: Seed) -> Parts:
    """Hold out a tenth of the pairs, at random or the latest, or each left entity's last pair."""
    if how == "random":
        return nk.data.split_random(pairs, valid=0, test=_HELD_OUT, random_state=seed)
    if pairs.timestamps is None:
        raise ValueError(f"split {how} needs a column of times; name it with timestamp=COLUMN")
    if how == "time":
        return nk.data.split_by_time(pairs, valid=0, test=_HELD_OUT)
    return nk.data.split_leave_last_out(pairs, random_state=seed)


def fit_and_judge(
    model: "nk.TwoTower", pairs: Interactions, split: str | None, judge: Callable[[Parts], Values], steps: Steps
) -> tuple[Record, Interactions]:
    """Fit the model; returns the measures of a fit without the held-out pairs, which these are, and the pairs learned.
    A split of the table itself is used unless `split` is a rule. Otherwise a second fit, on all pairs, keeps the loss
    that the short fits "trials" chose."""
    in_table = split not in SPLITS and pairs.split is not None and bool((pairs.split == 0).any())
    rule = split if split in SPLITS else "random"
    judged: Record = {"quality": {}, "differences": {}, "held_out": None, "notes": _of_weights(pairs)}
    judged["split"] = "column" if in_table else rule
    if rule != "none":
        parts = nk.data.split_given(pairs) if in_table else _split(pairs, rule, model.random_state)
        with steps.step("train") as callback:
            model.fit(parts.train, validation=parts.valid if len(parts.valid) else None, callback=callback)
        with steps.step("evaluate"):
            test, values, notes = _of_known(model, parts.train, parts.test, lambda of: judge(parts._replace(test=of)))
            judged |= {"quality": means(values), "differences": differences(values)}
        judged |= {"held_out": _held_out(test), "trials": model.trials_}
        judged["notes"] += [*parts.notes, *notes]
        if in_table:
            return judged, parts.train
        model.set_params(loss=model.loss_, regularization=model.regularization_)
    with steps.step("train on all") as callback:
        model.fit(pairs, callback=callback)
    return {"trials": model.trials_} | judged, pairs


def _of_weights(pairs: Interactions) -> list[str]:
    """A note if the heaviest hundredth of the pairs have most of the weight."""
    share = np.sort(pairs.weights)[-max(1, len(pairs) // 100) :].sum() / max(pairs.weights.sum(), 1e-12)
    note = f"1 % of the pairs hold {share:.1%} of the weight; leave its column out, unless it counts observations"
    return [note] if share > 0.5 and len(pairs) >= 100 else []


def _trained_further(
    pairs: Interactions, start: StrPath, dim: int | None, split: str | None, names: SideNames, steps: Steps
) -> tuple["nk.TwoTower", Record, list[str]]:
    """The model of `start` trained with new pairs, measures by a tenth of these, before and after training with the
    others, and notes."""
    model, notes = nk.TwoTower.load(start), list[str]()
    known = model.left_embeddings_.shape[1]
    if dim is not None and dim != known:
        raise ValueError(f"dim is {dim}, but {start} has vectors of {known}; leave dim out with start")
    rule = split if split in SPLITS else "random"
    judged: Record = {
        "quality": {}, "differences": {}, "held_out": None, "trials": [], "split": split or "random", "notes": [],
    }  # fmt: skip
    parts = None if rule == "none" else _split(pairs, rule, model.random_state)
    if parts is not None and len(parts.test) and len(parts.train):
        judged["notes"] = [*parts.notes]
        trial = nk.TwoTower.load(start).partial_fit(parts.train)
        try:
            values, about, notes = _judge_later({BEFORE: model, RESULT: trial}, parts.test, names)
            judged |= {"quality": _shown(means(values)), "differences": differences(values)}
            judged |= {"held_out": about or None, "split": rule}
        except ValueError as error:  # no id is known
            notes = [f"not evaluated: {error}"]
    with steps.step("train") as callback:
        return model.partial_fit(pairs, callback=callback), judged, notes


def _of_known(
    model: "nk.TwoTower", train: Interactions, test: Interactions, judge: Callable[[Interactions], Values]
) -> tuple[Interactions, Values, list[str]]:
    """The test pairs of ids that have pairs in `train`, which every ranking can rank, their measures, and a note of the
    others. If there are only others, these and their measures by a model with features alone, among all items."""
    known = [np.diff(train.indptr) > 0, np.bincount(train.indices, minlength=train.shape[1]) > 0]
    by_features = known[0] | (model.left_encoder_ is not None), known[1] | (model.right_encoder_ is not None)
    both, able = (users[test.rows] & items[test.indices] for users, items in (known, by_features))
    if both.all():
        return test, judge(test) if len(test) else Values(), []
    note = f"{counted(int((~both).sum()), 'pair')} not compared, of ids without a pair of training"
    new, values = test.select(able & ~both), Values()
    if len(new):
        values = {RESULT: _values(model, new, train)}
        shown = ", ".join(f"{at} {values[RESULT][at].mean():.4f}" for at in ("recall@20", COMPARED))
        note += f"; {RESULT} rank them by features, among all items: {shown}"
    compared = test.select(both)
    return (compared, judge(compared), [note]) if both.any() else (new, values, [note])


def _judge_towers(model: "nk.TwoTower", parts: Parts) -> Values:
    """Measures of the test pairs: by the model, by one without the features if it has any, by the baselines."""
    values = {RESULT: _values(model, parts.test, parts.train, True)}
    if parts.train.left_features is not None or parts.train.right_features is not None:
        found = {"loss": model.loss_, "regularization": model.regularization_}
        plain = nk.TwoTower(**model.get_params(deep=False) | found)
        plain.fit(replace(parts.train, left_features=None, right_features=None))
        values[PLAIN] = _values(plain, parts.test, parts.train, True)
    return values | judge_baselines(parts.train, parts.test, _CUTS, _RANKED, model.random_state)


def _values(
    model: "nk.TwoTower", test: Interactions, train: Interactions, compared: bool = False
) -> dict[str, np.ndarray]:
    """Measures of pairs without those of `train`, which may have further ids; all rankings that are `compared` rank its
    items alone."""
    tables = zip(train.shape, (model.left_embeddings_, model.right_embeddings_), strict=True)
    wide, items = [np.pad(X, ((0, n - len(X)), (0, 0))) for n, X in tables], np.unique(train.indices)
    how = {"seen": train, "candidates": items if compared else None}
    return ranking_metrics(wide[0], wide[1], test, k=_CUTS, metrics=_RANKED, each=True, **how)


def means(values: Values) -> Quality:
    """The mean of each measure over the left entities."""
    return {name: {at: float(found.mean()) for at, found in own.items()} for name, own in values.items()}


def differences(values: Values) -> Record:
    """The result less each other ranking in `COMPARED`: their paired differences."""
    one = next((name for name in (RESULT, LEARNED) if COMPARED in values.get(name, {})), None)
    if one is None:
        return {}
    of = {name: own[COMPARED] for name, own in values.items() if COMPARED in own}
    title = f"{COMPARED}: {one} less"
    return {f"{title} {name}": paired_difference(of[one], of[name])._asdict() for name in of if name != one}


def _judge_later(
    towers: Mapping[str, "nk.TwoTower"], pairs: Interactions, names: SideNames
) -> tuple[Values, Record, list[str]]:
    """Measures of models by pairs that none has seen, next to rankings that know the pairs of the last one.

    Only pairs of ids that the first model knows count; notes count the others. All rank the items that the first has
    pairs of, without the last one's pairs. Also the record of `_held_out`.
    """
    first, *_, last = [*towers.values(), *towers.values()]
    unknown = Unknown(drop=True)
    pairs = known_pairs(pairs, first.left_ids_, "left", names.left, unknown)
    pairs = known_pairs(pairs, first.right_ids_, "right", names.right, unknown)
    left, right = pairs.left_ids[pairs.rows], pairs.right_ids[pairs.indices]
    train, times = last.seen_, pairs.timestamps
    test = Interactions.from_pairs(left, right, None, times, left_ids=train.left_ids, right_ids=train.right_ids)
    keys, seen = (p.rows.astype(np.int64) * p.shape[1] + p.indices for p in (test, train))
    test = test.select(~np.isin(keys, seen))
    if seen := len(pairs) - len(test):
        unknown.leave_out(f"{counted(seen, 'pair')} that the model was trained on")
    if not len(test):
        return {}, {}, unknown.notes
    train = train.select(np.isin(train.indices, first.seen_.indices))  # new ids have the last numbers

    def judge(test: Interactions) -> Values:
        values = {name: _values(model, test, train, True) for name, model in towers.items()}
        return values | judge_baselines(train, test, _CUTS, _RANKED, last.random_state)

    test, values, notes = _of_known(last, train.select(np.isin(train.rows, first.seen_.rows)), test, judge)
    return values, _held_out(test), unknown.notes + notes


def judge_baselines(
    train: Interactions, test: Interactions, k: Sequence[int], measures: Sequence[str], random_state: Seed = 0
) -> Values:
    """Measures of the test pairs ranked by popularity and the baselines that `MOST_WORK` allows, which know `train`;
    the seed orders ties.

    Short lists of the others are filled up by popularity; a left entity without a history gets only these.
    """
    popular = nk.embedding.popularity(train, max(k), random_state=random_state)[1]
    lists, products = {"popularity": popular}, float((np.diff(train.indptr).astype(np.float64) ** 2).sum())
    baselines = {
        "item-kNN": (nk.embedding.item_knn, products),
        "graph filter": (nk.embedding.graph_filter, products),
        "sparse EASE": (nk.embedding.sparse_ease, products + REGRESSION * train.shape[1]),
    }
    for name, (baseline, work) in baselines.items():
        if work <= MOST_WORK:
            lists[name] = ranked = baseline(train, max(k), random_state=random_state)[1]
            for row in np.flatnonzero((ranked < 0).any(axis=1)):
                free, more = np.flatnonzero(ranked[row] < 0), popular[row][~np.isin(popular[row], ranked[row])]
                ranked[row, free[: len(more)]] = more[: len(free)]
    how = {"seen": train, "candidates": np.unique(train.indices)}
    return {name: list_metrics(found, test, k=k, metrics=measures, each=True, **how) for name, found in lists.items()}


def _shown(quality: Quality) -> Quality:
    """The measures of a table for people."""
    return {name: {measure: values[measure] for measure in _SHOWN} for name, values in quality.items()}


def _held_out(test: Interactions) -> Record:
    """Number of test pairs and of their left entities, and the first and last time of the pairs."""
    about: Record = {"pairs": len(test), "left": int((np.diff(test.indptr) > 0).sum())}
    if test.timestamps is not None and len(test):
        about |= {"from": test.timestamps.min().item(), "to": test.timestamps.max().item()}
    return about


def held_out_in_words(about: Fields | None, left: str) -> list[str]:
    """The record of the held-out pairs, if there are any, as a note; `left` names the left side."""
    if not about:
        return []
    when = f", first seen from {_time(about['from'])} to {_time(about['to'])}" if "from" in about else ""
    ids = counted(about["left"], "id")
    return [f"held out of training: {counted(about['pairs'], 'pair')} of {ids} ({left}){when}"]


def _time(value: float) -> str:
    """A time as in the table, and as a date if it can be seconds since 1970 (1973 to 2096)."""
    if not 1e8 <= value < 4e9:
        return f"{value:g}"
    return f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S} UTC ({value:.0f})"


def for_report(model: "nk.TwoTower", right: np.ndarray, pairs: Interactions) -> Record:
    """The history of the training, and the rights with most pairs, each with the 5 ids of largest cosine among the
    right vectors (n, d)."""
    counts, X, ids = np.bincount(pairs.indices, minlength=len(right)), unit_rows(right), model.right_ids_
    popular = np.argsort(-counts, kind="stable")[:EXAMPLES]
    similar = without_self(nearest(X, X[popular], 6, "cosine")[1], popular)
    return {
        "examples": [[ids[row].item(), *ids[near].tolist()] for row, near in zip(popular, similar, strict=True)],
        "history": [{name: value for name, value in entry.items() if name != "total"} for entry in model.history_],
    }


def save_left(folder: Path, vectors: np.ndarray, seen: Interactions) -> None:
    """Write the left vectors (m, d) with their ids, and the seen pairs with their weights."""
    arrays = {"vectors": vectors, "indptr": seen.indptr, "indices": seen.indices, "weights": seen.weights}
    _storage.write_arrays(folder / LEFT, arrays | _storage.pack_ids("left", seen.left_ids))


def move_left(old: Path, new: Path, positions: np.ndarray) -> None:
    """Copy the left side of an index whose vectors have moved: vector i to positions[i], -1 if it was removed."""
    arrays = _storage.read_arrays(old / LEFT)
    indptr, moved = arrays["indptr"], positions[arrays["indices"]]
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.lexsort((moved, rows))
    order = order[moved[order] >= 0]
    counts = np.bincount(rows[order], minlength=len(indptr) - 1)
    changed = {"indptr": np.append(0, np.cumsum(counts)).astype(indptr.dtype), "indices": moved[order]}
    _storage.write_arrays(new / LEFT, arrays | changed | {"weights": arrays["weights"][order]})
