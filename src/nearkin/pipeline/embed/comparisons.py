"""`nearkin embed` on comparisons: read, judge on held-out answers, embed all of them, write a folder with a map."""

import os
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import nearkin as nk
from nearkin._distributed import current
from nearkin._storage import saving_folder
from nearkin.contracts import Callback
from nearkin.data.comparison_split import split_comparisons
from nearkin.embedding.ordinal.storage import KIND, embedding_config, write_embedding
from nearkin.plots.ordinal import plot_error, plot_map
from nearkin.plots.style import dress
from nearkin.records import Comparisons

SHARES = (0.1, 0.2, 0.4, 0.7)  # of the answers, for the curve; the whole is the main run
DIMENSIONS = (1, 2, 3, 5, 8, 12)
MAX_CURVE = 200_000  # comparisons above which the curves' ten further fits are left out


def embed_comparisons(
    path: str | os.PathLike,
    *,
    out: str | os.PathLike,
    dim: int | str = 2,
    loss: str = "ste",
    solver: str = "auto",
    seed: int | None = 0,
    test_size: float = 0.2,
    callback: Callback | None = None,
) -> dict[str, Any]:
    """Embed the comparisons in `path` and write `out`: config.json, embedding.safetensors, objects.json and figures.

    The held-out error is that of a fit without a share `test_size` of the answers (0: none held out); the embedding
    written has learnt from all. Figures: map.png and map.svg, and, with held-out answers, error.png and error.svg, the
    error against the number of answers and against the dimension. Invalid rows are dropped and counted. callback(step,
    record) has "total". Returns the record to print.
    """
    answers = nk.read_comparisons(path, on_invalid="drop")
    options = {"loss": loss, "solver": solver, "random_state": seed}
    held_out = None
    curves: dict[str, dict[float, float]] = {}
    if test_size:
        train, test = split_comparisons(answers, test_size, random_state=seed)
        trial = nk.OrdinalEmbedding(dim, **options).fit(train, callback=_half(callback, 0))
        held_out = 1.0 - trial.score(test)
        if len(train) <= MAX_CURVE:
            curves = _curves(train, test, trial.n_components_, held_out, options)
        dim = trial.n_components_
    model = nk.OrdinalEmbedding(dim, **options).fit(answers, callback=_half(callback, 1))
    found = model.report()
    record = {
        "path": str(path),
        "out": str(out),
        "comparisons": len(answers),
        "objects": answers.n_objects,
        "dropped": answers.n_dropped,
        "contradictions": found["n_contradictions"],
        "groups": found["n_groups"],
        "dim": model.n_components_,
        "loss": loss,
        "solver": solver,
        "train_error": 1.0 - model.score(answers),
        "held_out_error": held_out,
        "notes": found["notes"],
        "curves": {name: {str(x): error for x, error in curve.items()} for name, curve in curves.items()},
    }
    if current().rank > 0:
        return record
    with saving_folder(out, KIND, {**embedding_config(model), "record": record}) as folder:
        write_embedding(model, folder)
        _save(plot_map(model.embedding_, model.objects_.tolist(), answers).get_figure(), folder / "map")
        if curves:
            _draw_curves(curves, folder / "error")
    return record


def _half(callback: Callback | None, part: int) -> Callback | None:
    """`callback` for the first or the second of two runs of equal length."""
    if callback is None:
        return None

    def report(step: int, record: dict[str, Any]) -> None:
        callback(part * record["total"] + step, {**record, "total": 2 * record["total"]})

    return report


def _curves(
    train: Comparisons, test: Comparisons, dim: int, held_out: float, options: dict[str, Any]
) -> dict[str, dict[float, float]]:
    """Held-out errors against the number of answers learnt from, and against the dimension."""

    def error(answers: Comparisons, p: int) -> float:
        return 1.0 - nk.OrdinalEmbedding(p, **options).fit(answers).score(test)

    limit = max(1, train.n_objects - 2)
    sizes = sorted({max(2, round(share * len(train))) for share in SHARES})
    by_answers = {float(size): error(train.take(slice(0, size)), dim) for size in sizes}
    by_dimension = {float(p): error(train, p) for p in DIMENSIONS if p <= limit and p != dim}
    return {
        "answers": {**by_answers, float(len(train)): held_out},
        "dimension": dict(sorted({**by_dimension, float(dim): held_out}.items())),
    }


def _draw_curves(curves: dict[str, dict[float, float]], stem: Path) -> None:
    figure = Figure(figsize=(8.4, 3.2), layout="constrained")
    left, right = (dress(ax) for ax in figure.subplots(1, 2))
    plot_error({"error": curves["answers"]}, "answers", left)
    plot_error({"error": curves["dimension"]}, "dimension", right, ylabel="")
    _save(figure, stem)


def _save(figure: Any, stem: Path) -> None:
    figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.patch.set_alpha(1)  # a page shines through the SVG; a bitmap stands alone
    figure.patch.set_facecolor("white")
    figure.savefig(stem.with_suffix(".png"), dpi=150)
