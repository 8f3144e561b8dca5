"""`nearkin bridge`: an old index searched with a new encoder."""

import nearkin as nk
from nearkin._fields import command
from nearkin._storage import check_target
from nearkin._types import Record
from nearkin.jobs.arguments import File, Folder, Place
from nearkin.jobs.inputs import open_file
from nearkin.jobs.outputs import check_file
from nearkin.jobs.rotate import ENDINGS, transform_file
from nearkin.jobs.run import Steps


def bridge(
    vectors: File,
    *,
    out: Place,
    old: File | None = None,
    with_: Folder | None = None,
    metric: str = "cosine",
    seed: int = 0,
    overwrite: bool = False,
) -> Record:
    """Search an old index with a new encoder: train the map from its vectors to the old ones.

    VECTORS are the new encoder's vectors of a few thousand texts, `old` the old encoder's of the same texts. Pairs held
    out choose the kind of map. Queries are then mapped by `with_`.

    Examples:

    - nearkin bridge new.npy --old old.npy --out bridge
    - nearkin bridge new_queries.npy --with bridge --out queries.npy

    Parameters
    ----------
    vectors: The new encoder's vectors, as `nearkin compress` reads them.
    out: Folder to write: the map; with `with_`, a file, .npy, or .parquet with the ids.
    old: The old encoder's vectors of the same texts, in the same order.
    with_: A folder saved before: its map maps VECTORS of the new encoder.
    metric: The metric of the index: cosine, ip or l2.
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    if (old is None) == (with_ is None):
        raise ValueError("type old=FILE to train a map on pairs, or with_=FOLDER to map vectors by a trained one")
    file, steps = open_file(vectors), Steps()
    if with_ is not None:
        check_file(out, overwrite, [vectors, with_], ENDINGS)
        return transform_file(file, nk.Bridge, with_, out)
    other = open_file(str(old))
    if len(file) != len(other):
        raise ValueError(f"{file.name} has {len(file):,} vectors and {other.name} {len(other):,}; give the same texts")
    check_target(out, overwrite, [file.name, other.name])
    with steps.step("read"):
        pairs = file.read(), other.read()
    with steps.step("learn"):
        made = nk.Bridge(metric=metric, random_state=seed).fit(*pairs)
    made.save(out, overwrite=overwrite)
    kept = next(trial["value"] for trial in made.trials_ if trial["won"])
    note = (
        f"mapped queries find {kept:.0%} of the new encoder's neighbours; below half, they can answer worse than the "
        "old encoder's: compare both by evaluate with qrels, or keep the old encoder for queries"
    )
    return {
        "old": other.name, "new": file.name, "out": str(out), "pairs": len(other), "metric": metric,
        "chosen": made.kind_, "kept": {trial["candidate"]: trial["value"] for trial in made.trials_},
        "chance": max(trial["chance"] for trial in made.trials_), "seconds": steps.seconds,
        "notes": [note] if kept < 0.5 else [],
        "next": [command("bridge", "Q.npy", **{"with": out}, out="Q_old.npy")],
    }  # fmt: skip
