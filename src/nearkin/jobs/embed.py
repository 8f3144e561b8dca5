"""`nearkin embed`: vectors from pairs or comparisons."""

from collections.abc import Callable

from nearkin._check import check_choice
from nearkin._fields import Fields, command, quoted
from nearkin._types import Record
from nearkin.data.comparisons.reading import kind_of
from nearkin.jobs.arguments import Column, File, Folder
from nearkin.jobs.embed_comparisons import embed_comparisons
from nearkin.jobs.pairs import embed_pairs

_OWN = {
    "pairs": ("left", "right", "timestamp", "min_weight", "split", "right_features", "start"),
    "comparisons": ("form", "scale"),
}


def embed(
    signals: File,
    *,
    out: Folder,
    left: Column | None = None,
    right: Column | None = None,
    timestamp: Column | None = None,
    min_weight: float | None = None,
    split: str | None = None,
    right_features: File | None = None,
    start: Folder | None = None,
    form: str | None = None,
    scale: str | tuple[float, float] | None = None,
    missing: str = "raise",
    dim: int | str | None = None,
    loss: str | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Record:
    """Train vectors on pairs or comparisons.

    Pairs (who took what) give vectors for both sides; comparisons (is A more like B or like C?) give a map of the
    objects. A share of the signals is held out first, to measure how good the vectors are.

    The names of columns, or an option for one of both, decide which the table holds: docs/reading.md has the names.
    Columns with other names are typed behind the file: answers.csv:p,q,r,response=chosen,rater=who or
    log.csv:user=u,item=i,rating=r. Features of the left side and weights of raters are arguments in Python.

    Examples:

    - nearkin embed pairs.csv --left user --right item --dim 64 --out emb
    - nearkin embed today.csv --start emb --out emb
    - nearkin embed answers.csv --dim 2 --loss t-ste --out map
    - nearkin embed answers.csv:p,q --form rated --scale 1:7 --out map

    Parameters
    ----------
    signals: A table, .csv, .tsv, .jsonl, .parquet, .feather or .npz: pairs (user, item[, weight][, timestamp]), or
        comparisons (i, j, k): i is more like j than like k.
    out: Folder to write.
    left: Pairs: the column of the left side, for example user.
    right: Pairs: the column of the right side, for example item.
    timestamp: Pairs: the column of times: numbers of one unit, or ISO dates.
    min_weight: Pairs: leave out rows of smaller weight.
    split: Pairs: the rule of held-out pairs: random, time (the latest), leave-last-out, none, or a column of 0 (train),
        1 (validation), 2 (test). [default: random]
    right_features: Pairs: a table of features of the right side with a column of ids (id, item, ...); its ids may lack
        pairs.
    start: Pairs: train this folder's model further with SIGNALS as new pairs, also into the same folder.
    form: triplet, odd-one-out, ranking or rated: the form of comparisons with an answer (triplet: the nearer of two).
    scale: Comparisons, rated: the rating that means farthest, and the one that means nearest: 1:7 or 7:1.
    missing: What to do with pairs or answers that lack a cell: raise an error, or drop and count them.
    dim: Dimensions of the vectors; auto, for comparisons, chooses by cross-validation. [default: 64 for pairs, 2 for
        comparisons]
    loss: The loss: auto, by held-out pairs or answers; for pairs all-pairs, cosine-softmax, in-batch-softmax; for
        comparisons ste, t-ste, gnmds, ckl, soe. [default: auto]
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    check_choice(missing, "missing", ("raise", "drop"))
    given: Record = {
        "left": left, "right": right, "timestamp": timestamp, "min_weight": min_weight, "split": split,
        "right_features": right_features, "start": start, "form": form, "scale": _scale(scale), "missing": missing,
    }  # fmt: skip
    given = {name: value for name, value in given.items() if value is not None}
    size, kind = _size(dim), _kind_of(signals, given, loss)
    if kind == "pairs" and size == "auto":
        raise ValueError("dim is 'auto', which is for comparisons; type a number for pairs, for example dim=64")
    embed_them: Callable[..., Record] = embed_pairs if kind == "pairs" else embed_comparisons
    record = embed_them(signals, out=out, dim=size, loss=loss, seed=seed, overwrite=overwrite, **given)
    shown = f"open {quoted(f'{out}/map.png')}"
    following = command("recommend", out, all=True, out="recs.csv") if kind == "pairs" else shown
    return {"signals": kind, **record, "next": [following, command("report", out)]}


def _scale(scale: str | tuple[float, float] | None) -> tuple[float, float] | None:
    """The two ends of a scale, FAR:NEAR."""
    if not isinstance(scale, str):
        return scale
    try:
        far, near = map(float, scale.split(":"))
    except ValueError:
        raise ValueError(f"scale is {scale!r}; it must be two numbers, FAR:NEAR, such as 1:7") from None
    return far, near


def _kind_of(signals: File, given: Fields, loss: str | None) -> str:
    """Whether the table holds pairs or comparisons: by the options, else by the loss, else by its columns."""
    told = {kind: name for kind, names in _OWN.items() for name in names if name in given}
    if loss not in (None, "auto"):
        told.setdefault("comparisons" if _is_of_comparisons(loss) else "pairs", f"loss={loss!r}")
    if len(told) == 2:
        raise ValueError(f"{told['pairs']} is for pairs, and {told['comparisons']} for comparisons; give one of them")
    return next(iter(told), None) or kind_of(signals, **{name: given[name] for name in given if name != "missing"})


def _is_of_comparisons(loss: str) -> bool:
    from nearkin.embedding.ordinal.losses import LOSSES  # loads numba

    if loss in LOSSES:
        return True
    from nearkin.embedding.two_tower.fitting import LOSSES as OF_PAIRS  # loads torch

    if loss not in OF_PAIRS:
        known = f"auto, {', '.join(OF_PAIRS)} for pairs, or {', '.join(LOSSES)} for comparisons"
        raise ValueError(f"loss is {loss!r}; it must be one of {known}")
    return False


def _size(dim: int | str | None) -> int | str | None:
    if dim is None or dim == "auto":
        return dim
    if not str(dim).isdecimal() or int(dim) < 1:
        raise ValueError(f"dim is {dim!r}; it must be a number of at least 1, or auto (for comparisons)")
    return int(dim)
