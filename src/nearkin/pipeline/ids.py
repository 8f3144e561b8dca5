"""`nearkin ids`: semantic ids of a file's rows, the files that language models read, and their report."""

import html
import json
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from textwrap import shorten

import numpy as np

import nearkin as nk
from nearkin._check import check_real
from nearkin._faiss import nearest_rows
from nearkin._storage import check_inputs, check_target, read_config, replacing_folder
from nearkin._types import Fields, Record, Seed
from nearkin.data import VectorFile
from nearkin.data.formats.parquet import import_pyarrow
from nearkin.index.identifiers import check_ids, join_ids
from nearkin.pipeline.inputs import GivenVectors, find_ids
from nearkin.pipeline.run import RUN, Steps, read_record, write_record
from nearkin.plots import new_axes, to_svg
from nearkin.plots.style import legend, series_style
from nearkin.report import Page, Section
from nearkin.report.page import facts, figures, table

KIND = nk.SemanticIds.KIND
LINES = "ids.jsonl"  # next to the arrays: a line for each item
TABLE = "ids.parquet"  # the same as a table
INDEX = "index.json"  # {item: [token, ...]}, which LC-Rec and its successors read
VOCABULARY = "vocabulary.txt"  # a token a line: the line's number is the token's offset
_MOST_LINES = 65_536  # turned to text at once
_JUDGED, _QUERIES, _NEIGHBOURS = 100_000, 500, 10  # rows and queries for the recall of prefixes
_POINTS = 33  # of a curve of loads
_CHILDREN, _EXAMPLES = 3, 4  # of a prefix in the tree, and items that it shows
_ROOTS, _LONGEST = 6, 60  # first codes shown, and letters of a title


def make_ids(
    file: VectorFile,
    out: str | os.PathLike[str],
    items: np.ndarray | None = None,
    *,
    levels: int = 3,
    codes: int = 256,
    balance: float = 0.0,
    towers: GivenVectors | None = None,
    alpha: float = 0.5,
    titles: np.ndarray | None = None,
    parquet: bool = False,
    random_state: Seed = None,
    steps: Steps | None = None,
    learned: nk.SemanticIds | None = None,
    about: Fields | None = None,
) -> Record:
    """Give each row of a file its semantic id and save them in the folder `out`, with the files that others read.

    `items` (n,) are the rows' names, row numbers by default. With `towers` ids are of rows joined with the vectors of
    the same items there, of which `alpha` is the share. `learned` are ids fitted to the rows before, and
    `about` more of their record. Returns the record, kept as run.json. ValueError before any work for names that
    repeat and for a folder that cannot be replaced.
    """
    steps = steps or Steps()
    names = np.arange(len(file)) if items is None else join_ids(np.empty(0, np.int64), check_ids(items, len(file)))
    if titles is not None and len(titles) != len(names):
        raise ValueError(f"texts has {len(titles)} lines and there are {len(names)} items; give one for each")
    check_target(out)
    check_inputs(out, [file.name])
    if parquet:
        import_pyarrow()
    with steps.step("read"):
        X = file.read()
        scales = None
        if towers is not None:
            X, scales = _joined(X, names, towers, check_real(alpha, "alpha", low=0, high=1))
    with steps.step("learn"):
        made = learned or nk.SemanticIds(levels, codes, balance, random_state).fit(X)
    with steps.step("judge"):
        judged = _judged(made, X)
    record = {
        "data": file.name, "towers": None if towers is None else towers.file.name, "alpha": alpha if towers else None,
        "scales": scales, "out": str(out), "items": len(names), "levels": made.levels, "codes": made.codes,
        "balance": balance, **judged, **(about or {}),
    }  # fmt: skip
    with steps.step("write"), replacing_folder(out) as fresh:
        made.save(fresh)
        _write_texts(made, names, fresh)
        if parquet:
            pa, writer = import_pyarrow()
            ids = pa.FixedSizeListArray.from_arrays(pa.array(made.ids_.ravel()), made.levels)
            columns = {"item": names, "ids": ids, "tokens": made.tokens(made.ids_)}
            writer.write_table(pa.table(columns), fresh / TABLE)
        texts = [str(title) for title in (names if titles is None else titles).tolist()]
        tree = _branches(made.ids_, np.arange(len(texts)), texts, made.vocabulary(), min(made.levels - 1, 2), _ROOTS)
        write_record(fresh / RUN, record | {"tree": tree, "seconds": steps.seconds})
    return record | {"seconds": steps.seconds}


def _joined(X: np.ndarray, names: np.ndarray, towers: GivenVectors, alpha: float) -> tuple[np.ndarray, list[float]]:
    """Rows (n, d + k), both parts of mean square 1 times their share, and the two factors. Items without a vector in
    `towers` get the mean of the others."""
    T, known = towers.file.read(), towers.ids
    if known is None:
        if len(T) != len(X):
            raise ValueError(f"--towers has {len(T)} rows without ids and there are {len(X)} items; give one for each")
        known = names
    places = {name: place for place, name in enumerate(known.astype(str).tolist())}
    found = np.array([places.get(name, -1) for name in names.astype(str).tolist()])
    if (found < 0).all():
        find_ids(names, known, "item")
    whole = np.where(found[:, None] >= 0, T[found], T[found[found >= 0]].mean(0))
    parts = [(X, 1 - alpha), (whole, alpha)]
    scales = [float(np.sqrt(share / max(float((A**2).sum(1).mean()), np.finfo(np.float32).tiny))) for A, share in parts]
    return np.hstack([A * np.float32(scale) for (A, _), scale in zip(parts, scales, strict=True)]), scales


def _judged(made: nk.SemanticIds, X: np.ndarray) -> Record:
    """Sharing, use of the codes, distortion, and the neighbours that share a prefix, for the record."""
    before, after = made.distortion_.tolist()
    loads = [np.bincount(column, minlength=made.codes) for column in made.ids_.T]
    shares = [load[load > 0] / load.sum() for load in loads]
    generator = np.random.default_rng(0)
    rows = np.sort(generator.permutation(len(X))[:_JUDGED])
    asked = generator.permutation(len(rows))[:_QUERIES]
    near = nearest_rows(X[rows], X[rows[asked]], _NEIGHBOURS + 1)
    same = np.cumprod(made.ids_[rows][near] == made.ids_[rows[asked], None], axis=2)[near != asked[:, None]]
    prefixes = (np.unique(made.ids_[:, :depth], axis=0, return_counts=True)[1] for depth in range(1, made.levels + 1))
    return {
        "shared_before": made.shared_,
        "used": [len(share) for share in shares],
        "perplexity": [float(np.exp(-(share * np.log(share)).sum())) for share in shares],
        "distortion": [before, after],
        "distortion_added": after / before - 1 if before else 0.0,
        "neighbours_kept": same.mean(0).tolist() if len(same) else [0.0] * made.levels,
        "behind_prefix": [float((count**2).sum() / len(X)) for count in prefixes],
        "judged_rows": len(rows),
        "loads": [np.quantile(load, np.linspace(1, 0, _POINTS)).tolist() for load in loads],
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


def _branches(
    ids: np.ndarray, rows: np.ndarray, titles: Sequence[str], words: Sequence[str], depth: int, most: int
) -> list[Record]:
    """The `most` fullest prefixes among `rows` one code on, `depth` levels deep."""
    if not depth:
        some = [str(titles[row]) for row in rows[:_EXAMPLES].tolist()]
        return [{"word": shorten(title, _LONGEST, placeholder="…"), "items": 1} for title in some]
    level = min(ids.shape[1] - 1, 2) - depth
    codes, counts = np.unique(ids[rows, level], return_counts=True)
    found, size = [], len(words) // ids.shape[1]
    for place in np.argsort(-counts, kind="stable")[:most].tolist():
        inside = rows[ids[rows, level] == codes[place]]
        below = _branches(ids, inside, titles, words, depth - 1, _CHILDREN)
        found.append({"word": words[level * size + int(codes[place])], "items": len(inside), "below": below})
    return found


def ids_page(folder: Path) -> Page:
    """The report of semantic ids: sharing, codes in use, neighbours by prefix, and what shares a prefix."""
    run, name, config = read_record(folder, RUN), folder.resolve().name, read_config(folder)
    page = Page(title=f"{name}: semantic ids", made_by=f"nearkin report {folder}")
    if not run:
        page.lead = f"These {config['kind']} were saved from Python, without a record; nearkin ids writes one."
        return page
    page.title = f"{name}: semantic ids of {run['items']:,} items"
    page.lead = f"{run['levels']} codes of {run['codes']} values each, learned from {run['data']}"
    page.lead += f" and, with alpha {run['alpha']:g}, {run['towers']}." if run["towers"] else "."
    size = {
        "shared their nearest id": f"{run['shared_before']:.1%}",
        "share an id now": "0%",
        "distortion added for that": f"{run['distortion_added']:.2%}",
        "seconds": sum(run["seconds"].values()),
    }
    page.add(Section("Unique ids", facts(size), "Each item has the free id that adds the least squared error in all."))
    dead = (run["codes"] - used for used in run["used"])
    rows = list(zip(count(1), dead, run["perplexity"], run["neighbours_kept"], run["behind_prefix"], strict=False))
    lead = (
        "Dead codes name no item. Perplexity is the number of equally used codes of the same entropy. The fourth "
        f"column is the share of an item's 10 nearest, among {run['judged_rows']:,}, that share its codes up to this "
        "level; the last, how many items share them with the average item."
    )
    columns = ["level", "dead", "perplexity", "nearest", "items"]
    body = table(columns, rows, formats={2: ".1f", 3: ".3f", 4: ".1f"})
    body += figures((_loads(run["loads"]), "Items of each code, the fullest code first."))
    page.add(Section("Levels", body, lead))
    lead = "The fullest first codes, their fullest continuations, and some items of each."
    return page.add(Section("What shares a prefix", f'<div class="tree">{_list(run["tree"])}</div>', lead))


def _loads(loads: Sequence[Sequence[float]]) -> str:
    ax, names = new_axes(), [f"level {level}" for level in range(1, len(loads) + 1)]
    for load, (name, style) in zip(loads, series_style(names).items(), strict=True):
        ax.plot(np.linspace(0, 100, len(load)), load, label=name, color=style["color"])
    ax.set_xlabel("codes, %")
    ax.set_ylabel("items")
    ax.set_ylim(bottom=0)
    legend(ax)
    return to_svg(ax, "loads")


def _list(branches: Sequence[Record]) -> str:
    """Nested lists of prefixes, with the number of items of each."""
    made = ""
    for branch in branches:
        word, below = html.escape(branch["word"]), branch.get("below")
        made += f"<li><code>{word}</code> {branch['items']:,} items{_list(below)}</li>" if below else f"<li>{word}</li>"
    return f"<ul>{made}</ul>"
