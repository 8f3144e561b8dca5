"""`nearkin embed` on comparisons: a map of the objects, judged on held-out answers and saved as a folder."""

import csv
import os
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

import nearkin as nk
from nearkin._check import check_choice
from nearkin._distributed import current
from nearkin._fields import FileOrFrame
from nearkin._storage import check_inputs, check_target, saving_folder
from nearkin._types import Fields, Record
from nearkin.contracts import Callback
from nearkin.data.comparisons.votes import noise_floor, split_comparisons
from nearkin.embedding.ordinal.answers import error_interval
from nearkin.embedding.ordinal.estimator import KIND, embedding_config, write_embedding
from nearkin.plots.figures import plot_error, plot_map
from nearkin.plots.style import any_script, dress, letters_without_font
from nearkin.records import Comparisons

TABLES = (None, "csv", "parquet")
SHARES = (0.1, 0.2, 0.4, 0.7)  # of the answers, for the error curve
DIMENSIONS = (1, 2, 3, 5, 8, 12)
MAX_CURVE = 200_000  # comparisons; with more the ten fits of the curves and the fifty of the ellipses are left out
MAX_ELLIPSES = 50  # objects; more ellipses cover each other


def embed_comparisons(
    path: str | os.PathLike,
    *,
    out: str | os.PathLike,
    dim: int | str | None = None,
    loss: str | None = None,
    solver: str = "auto",
    seed: int | None = 0,
    test_size: float = 0.2,
    next_queries: int = 0,
    tables: str | None = None,
    raters: str = "equal",
    callback: Callback | None = None,
    **columns: Any,
) -> Record:
    """Embed the comparisons in `path` and write the folder `out`; returns the record to print.

    Options as of `nearkin embed`; `columns` are those of `read_comparisons`. The held-out error is that of a fit
    without a share `test_size` of the questions (0: none held out), with its 90 % interval and the noise floor, which
    is the least error possible on these answers. The saved embedding is fitted on all answers. Invalid rows are dropped
    and counted. The figures, map and error (.png, .svg), have 90 % ellipses up to 50 objects, and curves against the
    number of answers and the dimension.
    """
    check_target(out)
    check_choice(tables, "--tables", TABLES)
    check_inputs(out, [path])
    dim = dim or 2
    answers = nk.read_comparisons(path, on_invalid="drop", **columns)
    options = {"loss": loss or "ste", "solver": solver, "random_state": seed}
    judged: Record = {"held_out_error": None, "curves": {}}
    curve = None
    if test_size:
        train, test = split_comparisons(answers, test_size, by="questions", random_state=seed)
        trial = nk.OrdinalEmbedding(dim, **options).fit(train, raters=raters, callback=_half(callback, 0))
        dim, curve = trial.n_components_, trial.dimension_curve_
        judged = {
            "held_out_answers": len(test),
            "held_out_error": 1.0 - trial.score(test),
            "held_out_interval": list(error_interval(trial.embedding_, test)),
            "noise_floor": noise_floor(test),
            "curves": _curves(train, test, trial, options),
        }
    model = nk.OrdinalEmbedding(dim, **options).fit(answers, raters=raters, callback=_half(callback, 1))
    model.dimension_curve_ = curve or model.dimension_curve_
    record = _describe(path, out, answers, model) | judged
    if test_size:
        low, high = judged["held_out_interval"]
        record["notes"].append(
            f"held-out error {judged['held_out_error']:.3f}, 90 % interval {low:.3f} to {high:.3f}, on "
            f"{judged['held_out_answers']} answers to questions that were not learned from; contradictions among these "
            f"answers make at least {judged['noise_floor']:.3f}"
        )
    if missing := letters_without_font(map(str, model.objects_.tolist())):
        record["notes"].append(
            f"map.png shows boxes for {missing}, which its font lacks; map.svg and the report do not"
        )
    if model.rater_reliability_ is not None:
        record["rater_reliability"] = {str(rater): weight for rater, weight in model.rater_reliability_.items()}
    if next_queries:
        record["next_queries"] = model.next_queries(next_queries).tolist()
    if current().rank == 0:
        _write(out, model, answers, record, {"csv", tables or "csv"})
    return record


def _describe(path: FileOrFrame, out: str | os.PathLike, answers: Comparisons, model: nk.OrdinalEmbedding) -> Record:
    found = model.report()
    return {
        "path": str(path),
        "out": str(out),
        "understood": str(answers.source),
        "comparisons": len(answers),
        "objects": answers.n_objects,
        "dropped": answers.n_dropped,
        "contradictions": found["n_contradictions"],
        "groups": found["n_groups"],
        "dim": model.n_components_,
        "loss": model.loss,
        "solver": model.solver,
        "train_error": 1.0 - model.score(answers),
        "notes": found["notes"],
    }


def _write(
    out: str | os.PathLike, model: nk.OrdinalEmbedding, answers: Comparisons, record: Record, tables: set[str]
) -> None:
    draws = model.bootstrap() if answers.n_objects <= MAX_ELLIPSES and len(answers) <= MAX_CURVE else None
    with saving_folder(out, KIND, {**embedding_config(model), "record": record}) as folder:
        write_embedding(model, folder)
        for ending in tables:
            model.write_coordinates(folder / f"coordinates.{ending}")
        if "next_queries" in record:
            with (folder / "questions.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([("anchor", "left", "right"), *record["next_queries"]])
        map_of_all = plot_map(model.embedding_, model.objects_.tolist(), answers, draws=draws)
        _save(map_of_all.get_figure(), folder / "map")
        if record["curves"]:
            figure = Figure(figsize=(8.4, 3.2), layout="constrained")
            for ax, (name, curve) in zip(figure.subplots(1, 2), record["curves"].items(), strict=True):
                points = {float(x): error for x, error in curve.items()}
                plot_error({"error": points}, name, dress(ax))
                if name == "dimension":
                    ax.set_ylabel("")
            _save(figure, folder / "error")


def _half(callback: Callback | None, part: int) -> Callback | None:
    """`callback` for the first (0) or second (1) of two fits of equal length."""
    if callback is None:
        return None

    def report(step: int, record: Fields) -> None:
        callback(part * record["total"] + step, {**record, "total": 2 * record["total"]})

    return report


def _curves(
    train: Comparisons, test: Comparisons, trial: nk.OrdinalEmbedding, options: Record
) -> dict[str, dict[str, float]]:
    """Held-out errors against the number of answers and against the dimension; none for more than `MAX_CURVE` answers.

    `trial` was fitted on all of `train`. Raters have equal weights here: few answers do not tell them apart.
    """
    if len(train) > MAX_CURVE:
        return {}

    def error(answers: Comparisons, p: int) -> float:
        return 1.0 - nk.OrdinalEmbedding(p, **options).fit(answers).score(test)

    dim = trial.n_components_
    known = 1.0 - trial.score(test) if trial.rater_reliability_ is None else error(train, dim)
    limit = max(1, train.n_objects - 2)
    sizes = sorted({max(2, round(share * len(train))) for share in SHARES})
    by_answers = {size: error(train.take(slice(0, size)), dim) for size in sizes} | {len(train): known}
    by_dimension = {p: error(train, p) for p in DIMENSIONS if p <= limit and p != dim} | {dim: known}
    named = {"answers": by_answers, "dimension": dict(sorted(by_dimension.items()))}
    return {name: {str(float(x)): error for x, error in curve.items()} for name, curve in named.items()}


def _save(figure: Any, stem: Path) -> None:
    with any_script(), matplotlib.rc_context({"svg.fonttype": "none"}):  # a browser has fonts that this machine lacks
        figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
        figure.patch.set_alpha(1)  # the SVG is transparent for a page; a bitmap needs a background
        figure.patch.set_facecolor("white")
        figure.savefig(stem.with_suffix(".png"), dpi=150)
