"""`nearkin ids`: semantic ids of a file's vectors, files for language models, and the data of the report."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

import nearkin as nk
from nearkin._check import check_real
from nearkin._exact import nearest
from nearkin._fields import StrPath, command, counted
from nearkin._storage import check_target, replacing_folder
from nearkin._types import Fields, Record
from nearkin.data import VectorFile
from nearkin.data.formats.parquet import write_table
from nearkin.index.identifiers import given_ids
from nearkin.jobs.arguments import File, Folder
from nearkin.jobs.inputs import GivenVectors, find_ids, open_given, places_of
from nearkin.jobs.run import RUN, Steps, write_record

KIND = nk.SemanticIds.KIND
LINES = "ids.jsonl"  # next to the arrays: a line for each item
TABLE = "ids.parquet"  # the same as a table
INDEX = "index.json"  # {item: [token, ...]}, which LC-Rec and its successors read
VOCABULARY = "vocabulary.txt"  # a token a line: the line's number is the token's offset
_MOST_LINES = 65_536  # turned to text at once
_JUDGED, _QUERIES, _NEIGHBOURS = 100_000, 500, 10  # rows and queries for the recall of prefixes


def ids(
    vectors: File,
    *,
    out: Folder,
    levels: int = 3,
    codes: int = 256,
    towers: Folder | None = None,
    alpha: float = 0.5,
    ids: File | None = None,
    parquet: bool = False,
    seed: int = 0,
    overwrite: bool = False,
) -> Record:
    """Give every item a unique semantic id of a few codes; similar items share their first codes.

    The folder holds ids.jsonl, a line for each item with its codes and tokens such as <a_12><b_240><c_3>, the same
    tokens as index.json in the form of LC-Rec, vocabulary.txt with every token, and what `nk.SemanticIds.load` needs
    to give new items free ids.

    Examples:

    - nearkin ids items.npy --out ids
    - nearkin ids items.parquet --levels 4 --codes 256 --out ids
    - nearkin embed pairs.csv --out emb && nearkin ids items.parquet --towers emb --out ids

    Parameters
    ----------
    vectors: The vectors, as `nearkin compress` reads them.
    out: Folder to write.
    levels: Codes of a semantic id.
    codes: Values of each code of a semantic id, a power of two.
    towers: A folder of `nearkin embed`: items of the same users then share prefixes too.
    alpha: With `towers`, the share of its vectors of the squared distances; the rest is that of VECTORS.
    ids: Ids, one a line: those of the vectors (.npy, .txt, .csv, .parquet; file.csv:column). [default: the ids that
        the vectors have, else row numbers]
    parquet: Write ids.parquet too.
    seed: Seed of everything random: the same seed gives the same result.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    """
    given = open_given(vectors, ids=ids)
    made = make_ids(
        given.file, out, nk.SemanticIds(levels, codes, seed), given.ids, alpha=alpha, parquet=parquet,
        towers=None if towers is None else open_given(towers),
        overwrite=overwrite,
    )  # fmt: skip
    return made | {"understood": given.about, "next": [command("report", out)]}


def make_ids(
    file: VectorFile,
    out: StrPath,
    model: nk.SemanticIds,
    items: np.ndarray | None = None,
    *,
    towers: GivenVectors | None = None,
    alpha: float = 0.5,
    parquet: bool = False,
    about: Fields | None = None,
    overwrite: bool = False,
    steps: Steps | None = None,
) -> Record:
    """Give each row of a file its semantic id and save them in the folder `out`, with the files that others read.

    `model` is fitted to the vectors unless it has ids already. `items` (n,) are the vectors' names, row numbers by
    default. With `towers` ids are of vectors joined with the vectors of the same items there, of which `alpha` is the
    share. Returns the record, kept as run.json, with `about`.
    """
    steps = steps or Steps()  # with those of the towers
    names = np.arange(len(file)) if items is None else given_ids(items, len(file))
    check_target(out, overwrite, [file.name])
    with steps.step("read"):
        X, scales = file.read(), None
        if towers is not None:
            X, scales = _joined(X, names, towers, check_real(alpha, "alpha", low=0, high=1))
    with steps.step("train"):
        made = model if hasattr(model, "ids_") else model.fit(X)
    with steps.step("evaluate"):
        judged = _judged(made, X)
    record = {
        "data": file.name, "towers": None if towers is None else towers.file.name, "alpha": alpha if towers else None,
        "scales": scales, "out": str(out), "items": len(names), "levels": made.levels, "codes": made.codes,
        **judged, **(about or {}),
    }  # fmt: skip
    with steps.step("write"), replacing_folder(out, overwrite) as fresh:
        made.save(fresh)
        _write_texts(made, names, fresh)
        if parquet:
            ids = pa.FixedSizeListArray.from_arrays(pa.array(made.ids_.ravel()), made.levels)
            columns = {"item": names, "ids": ids, "tokens": made.tokens(made.ids_)}
            write_table(fresh / TABLE, [columns], ".parquet")
        write_record(fresh / RUN, record | {"seconds": steps.seconds})
    return record | {"seconds": steps.seconds}


def _joined(X: np.ndarray, names: np.ndarray, towers: GivenVectors, alpha: float) -> tuple[np.ndarray, list[float]]:
    """Rows (n, d + k), both parts of mean square 1 times their share, and the two factors. Items without a vector in
    `towers` get the mean of the others."""
    T, known = towers.file.read(), towers.ids
    if known is None:
        if len(T) != len(X):
            rows, items = counted(len(T), "vector"), counted(len(X), "item")
            raise ValueError(f"towers has {rows} without ids and there are {items}; give one for each")
        known = names
    found = places_of(names, known)
    if (found < 0).all():
        find_ids(names, known, "item")
    whole = np.where(found[:, None] >= 0, T[found], T[found[found >= 0]].mean(0))
    parts = [(X, 1 - alpha), (whole, alpha)]
    scales = [float(np.sqrt(share / max(float((A**2).sum(1).mean()), np.finfo(np.float32).tiny))) for A, share in parts]
    return np.hstack([A * np.float32(scale) for (A, _), scale in zip(parts, scales, strict=True)]), scales


def _judged(made: nk.SemanticIds, X: np.ndarray) -> Record:
    """Sharing, use of the codes, distortion, and the neighbours that share a prefix, for the record."""
    before, after = made.distortion_.tolist()
    shares = [np.unique(column, return_counts=True)[1] / len(X) for column in made.ids_.T]
    generator = np.random.default_rng(0)
    rows = generator.permutation(len(X))[:_JUDGED]  # of equal rows, the first ones are the nearest
    asked = generator.permutation(len(rows))[:_QUERIES]
    near = nearest(X[rows], X[rows[asked]], _NEIGHBOURS + 1)[1]
    same = np.cumprod(made.ids_[rows][near] == made.ids_[rows[asked], None], axis=2)[near != asked[:, None]]
    prefixes = (np.unique(made.ids_[:, :depth], axis=0, return_counts=True)[1] for depth in range(1, made.levels + 1))
    return {
        "shared_before": made.shared_,
        "used": [len(share) for share in shares],
        "perplexity": [float(np.exp(-(share * np.log(share)).sum())) for share in shares],
        "distortion": [before, after],
        "distortion_added": after / before - 1 if before else 0.0,
        "prefix_recall": same.mean(0).tolist() if len(same) else [0.0] * made.levels,
        "behind_prefix": [float((count**2).sum() / len(X)) for count in prefixes],
        "judged_rows": len(rows),
    }


def _write_texts(made: nk.SemanticIds, names: np.ndarray, folder: Path) -> None:
    """JSON lines, the index of LC-Rec, and the vocabulary."""
    (folder / VOCABULARY).write_text("".join(f"{word}\n" for word in made.vocabulary()), encoding="utf-8")
    with (folder / LINES).open("w", encoding="utf-8") as stream, (folder / INDEX).open("w", encoding="utf-8") as index:
        before = "{"
        for start in range(0, len(names), _MOST_LINES):
            some = made.ids_[start : start + _MOST_LINES]
            for name, row, tokens in zip(names[start:].tolist(), some.tolist(), made.tokens(some), strict=False):
                line = {"item": name, "ids": row, "tokens": tokens}
                stream.write(json.dumps(line, ensure_ascii=False) + "\n")
                words = json.dumps(tokens.replace("><", "> <").split())
                index.write(f"{before}\n{json.dumps(str(name), ensure_ascii=False)}: {words}")
                before = ","
        index.write("\n}\n")
