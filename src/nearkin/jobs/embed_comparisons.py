"""`nearkin embed` on comparisons: a map of the objects, measured on held-out answers and saved as a folder."""

from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from matplotlib.figure import Figure

import nearkin as nk
from nearkin._check import numpy_generator
from nearkin._distributed import current
from nearkin._fields import Extra, FileOrFrame, Record, StrPath, counted
from nearkin._storage import check_target, saving_folder
from nearkin.data.comparisons.forms import turn
from nearkin.data.comparisons.votes import held_out_noise_floor, number_judgements, split_comparisons
from nearkin.data.formats.parquet import write_table
from nearkin.embedding.ordinal.answers import count_per_object, doubts, error_interval, n_judgements
from nearkin.embedding.ordinal.estimator import KIND, embedding_config, write_embedding
from nearkin.jobs.run import Steps
from nearkin.plots.figures import plot_error, plot_map
from nearkin.plots.style import house_style, letters_without_font
from nearkin.records import Comparisons

Opposite: TypeAlias = dict[object, float]
"""Raters who answer the opposite of the others, and their agreement with these."""

NEXT = 20  # questions to ask next, of the most information
SHARES = (0.1, 0.2, 0.4, 0.7)  # of the answers, for the error curve
_HELD_OUT = 0.2  # share of the questions; see `split_comparisons` for ratings
DIMENSIONS = (1, 2, 3, 5, 8, 12)
MAX_CURVE = 200_000  # comparisons; with more the ten fits of the curves and the fifty of the ellipses are left out
_REPEATED = 20  # questions; the standard error of the share that is contradicted is then below .11
MAX_ELLIPSES = 50  # objects; more ellipses cover each other


def embed_comparisons(
    path: StrPath,
    *,
    out: StrPath,
    dim: int | str | None = None,
    loss: str | None = None,
    seed: int | None = 0,
    raters: str = "equal",
    overwrite: bool = False,
    **columns: Any,
) -> Record:
    """Embed comparisons and write a folder with map, figures and held-out error.

    The held-out error is that of a fit without a fifth of the questions (of rated pairs a third, as only comparisons
    of two held-out ratings are tested), with its 90 % interval, and the noise floor,
    the least error of any model on new answers, where at least 20 questions were asked twice. Raters who answer the
    opposite of the others are named, and do not count in this error; `raters` is "equal" or "estimated", "turn" to
    reverse their answers, "drop" to leave them out. The saved embedding is fitted on all answers. The figures, map and
    error (.png, .svg, .pdf), have 90 % ellipses up to 50 objects, and curves against the number of answers and the
    dimension. `columns` are those of `nearkin.read_comparisons`.

    Returns what is printed, and saved as run.json. ValueError as of `read_comparisons` and `OrdinalEmbedding.fit`, and
    for an `out` that exists without `overwrite`.
    """
    check_target(out, overwrite, [path])
    dim = dim or 2
    answers = nk.read_comparisons(path, **columns)
    options = {"loss": loss or "auto", "random_state": seed}
    opposite, direction = _doubts(answers, 2 if dim == "auto" else max(2, int(dim)), options, seed)
    how, weighed = (raters, "equal") if raters in ("turn", "drop") else ("keep", raters)
    answers, reversal_notes = _without_opposite(answers, opposite, how)
    doubted = opposite if how == "keep" else {}  # raters left out of the held-out error
    train, test = split_comparisons(answers, _HELD_OUT, by="questions", random_state=seed)
    test = _without_opposite(test, doubted, "drop")[0]
    steps = Steps()
    with steps.step("train") as callback:
        trial = nk.OrdinalEmbedding(dim, **options).fit(train, raters=weighed, callback=callback)
    options |= {"loss": trial.loss_, "loss_parameter": trial.loss_parameter_}
    error, (low, high) = 1.0 - trial.score(test), error_interval(trial.embedding_, test)
    curves = _curves(train, test, trial, options)
    model = nk.OrdinalEmbedding(trial.n_components_, **options)
    with steps.step("train on all") as callback:
        model.fit(answers, raters=weighed, callback=callback).dimension_curve_ = trial.dimension_curve_
    floor, floor_note = _noise_floor(_without_opposite(answers, doubted, "drop")[0])
    record: Record = _described(path, out, answers, model) | {
        "held_out_answers": len(test), "held_out_judgements": n_judgements(test), "held_out_error": error,
        "held_out_interval": [low, high], "curves": curves,
        "noise_floor": floor, "dimension_curve": model.dimension_curve_,
        "reversed_raters": {str(rater): share for rater, share in opposite.items()},
    }  # fmt: skip
    record["notes"] = notes = [*record["notes"], *direction, *reversal_notes]
    if dim == "auto":
        tried = cast(Record, model.dimension_curve_)
        notes.append(
            f"dimension {model.n_components_} is the smallest whose error is within one standard error of the least"
            if min(tried["error"]) < tried["chance"]
            else f"no dimension predicts held-out answers: the least error is {min(tried['error']):.3f}, and coin "
            f"flips have {tried['chance']:.3f} or more 19 times of 20; collect more answers, or doubt the map. "
            f"Dimension {model.n_components_} is the smallest"
        )
    notes.append(
        f"held-out error {error:.3f}, 90 % interval {low:.3f} to {high:.3f}, on {counted(len(test), 'comparison')} "
        f"from {counted(record['held_out_judgements'], 'judgement')} that were not trained on; {floor_note}"
    )
    if missing := letters_without_font(map(str, model.objects_.tolist())):
        notes.append(f"map.png shows boxes for {missing}, which its font lacks; map.svg and the report do not")
    if model.rater_reliability_ is not None:
        record["rater_reliability"] = {str(rater): weight for rater, weight in model.rater_reliability_.items()}
    form = "ranking" if columns.get("form") == "ranking" else "triplet"
    record["next_queries"] = model.next_queries(NEXT, form=form).tolist()
    if current().rank == 0:
        _write(out, model, answers, record, overwrite)
    return record


def _doubts(answers: Comparisons, dim: int, options: Record, seed: int | None) -> tuple[Opposite, list[str]]:
    """Raters who answer the opposite of the others, with their agreement, and notes; none above `MAX_CURVE` answers."""
    if len(answers) > MAX_CURVE:
        return {}, []
    if options["loss"] == "auto":  # with a choice of the loss in each fold no more raters were found
        options = options | {"loss": "ste", "loss_parameter": 0.1}

    def embed(train: Comparisons) -> np.ndarray:
        return nk.OrdinalEmbedding(dim, **options).fit(train).embedding_

    return doubts(answers, embed, numpy_generator(seed))


def _without_opposite(answers: Comparisons, opposite: Opposite, how: str) -> tuple[Comparisons, list[str]]:
    """The answers, with those of such raters kept, reversed or dropped, and a note for each rater."""
    if not opposite:
        return answers, []
    theirs = np.isin(np.asarray(answers.annotators), np.array(list(opposite)))
    if how == "drop":
        answers = answers.take(~theirs)
    elif how == "turn":
        if answers.events is not None:
            raise ValueError("raters is 'turn', for answers between two; for these answers type raters='drop'")
        answers = turn(answers, ~theirs)
    kept = "kept, but not in the held-out error; raters='turn' or raters='drop' in Python corrects this"
    done = {"keep": kept, "turn": "turned round", "drop": "left out"}[how]
    return answers, [
        f"{rater} answers the opposite of the others ({share:.0%} agreement, {1 - share:.0%} expected if reversed): "
        + done
        for rater, share in opposite.items()
    ]


def _noise_floor(answers: Comparisons) -> tuple[float | None, str]:
    """The least error of any model on new answers, by questions answered at least twice; None if they are few."""
    floor, repeated = held_out_noise_floor(answers)
    asked = f"{counted(repeated, 'question')} asked more than once"
    if repeated < _REPEATED:
        return None, f"{asked}, too few to estimate the noise of the answers"
    return floor, f"no model errs below about {floor:.3f} on new answers, by {asked}"


def _described(path: FileOrFrame, out: StrPath, answers: Comparisons, model: nk.OrdinalEmbedding) -> Record:
    counts = model.report()
    return {
        "path": str(path), "out": str(out), "understood": str(answers.source), "comparisons": len(answers),
        "objects": answers.n_objects, "dropped": answers.n_dropped, "contradictions": counts["n_contradictions"],
        "groups": counts["n_groups"], "dim": model.n_components_, "loss": model.loss_,
        "loss_parameter": model.loss_parameter_, "solver": model.solver, "train_error": 1.0 - model.score(answers),
        "notes": counts["notes"],
    }  # fmt: skip


def _write(out: StrPath, model: nk.OrdinalEmbedding, answers: Comparisons, record: Record, overwrite: bool) -> None:
    draws = model.bootstrap() if answers.n_objects <= MAX_ELLIPSES and len(answers) <= MAX_CURVE else None
    with saving_folder(out, KIND, {**embedding_config(model), "record": record}, overwrite) as folder:
        write_embedding(model, folder)
        points = {f"x{c + 1}": model.embedding_[:, c] for c in range(model.n_components_)}
        columns = {"object": model.objects_, **points, "answers": count_per_object(model.comparisons_)}
        write_table(folder / "coordinates.csv", [columns], ".csv")
        asked = np.array(record["next_queries"] or np.empty((0, 3)), object).T
        shown = ["left", "right"] if len(asked) == 3 else [f"object{place}" for place in range(1, len(asked))]
        write_table(folder / "questions.csv", [dict(zip(["anchor", *shown], asked, strict=True))], ".csv")
        _save(plot_map(model.embedding_, model.objects_.tolist(), draws=draws).get_figure(), folder / "map")
        if record["curves"]:
            if (curve := model.dimension_curve_) is not None:
                tried = dict(zip(curve["dimension"], curve["error"], strict=True))
                _save(plot_error({"error": tried}, "dimension").get_figure(), folder / "dimension")
            curves = record["curves"] | ({} if curve is None else {"dimension": curve})
            with house_style():
                figure = Figure(figsize=(8.4, 3.2), layout="constrained")
                for ax, (name, curve) in zip(figure.subplots(1, 2), curves.items(), strict=True):
                    plot_error({"error": dict(zip(curve[name], curve["error"], strict=True))}, name, ax)
                    if name == "dimension":
                        ax.set_ylabel("")
            _save(figure, folder / "error")


def _curves(
    train: Comparisons, test: Comparisons, trial: nk.OrdinalEmbedding, options: Record
) -> dict[str, dict[str, list]]:
    """Held-out errors against the number of judgements and, if it was not chosen, the dimension; none for more than
    `MAX_CURVE` comparisons. `trial` was fitted on all of `train`. Raters have equal weights."""
    if len(train) > MAX_CURVE:
        return {}

    def error(answers: Comparisons, p: int) -> float:
        return 1.0 - nk.OrdinalEmbedding(p, **options).fit(answers).score(test)

    dim = trial.n_components_
    known = 1.0 - trial.score(test) if trial.rater_reliability_ is None else error(train, dim)
    limit = max(1, train.n_objects - 2)
    number, whole = number_judgements(train, shared=False), n_judgements(train)
    place = numpy_generator(options["random_state"]).permutation(whole)[number].max(axis=1)  # files are often sorted
    parts = {size: train.take(place < size) for size in sorted({max(2, round(s * whole)) for s in SHARES})}
    by_answers = {size: error(part, dim) for size, part in parts.items() if len(part) > 1} | {whole: known}
    named = {"answers": by_answers}
    if trial.dimension_curve_ is None:
        by_dimension = {p: error(train, p) for p in DIMENSIONS if p <= limit and p != dim} | {dim: known}
        named["dimension"] = dict(sorted(by_dimension.items()))
    return {name: {name: [*map(int, curve)], "error": [*curve.values()]} for name, curve in named.items()}


def _save(figure: Extra, stem: Path) -> None:
    with house_style():
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None})
        figure.patch.set_alpha(1)  # the SVG is transparent for a page; a bitmap needs a background
        figure.patch.set_facecolor("white")
        figure.savefig(stem.with_suffix(".png"), dpi=150)
