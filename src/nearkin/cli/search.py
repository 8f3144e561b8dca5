"""`nearkin search`, `recommend` and `similar`: results of a saved folder."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

import nearkin as nk
from nearkin import jobs
from nearkin._fields import Record, counted, show
from nearkin.cli.options import (
    Embedding,
    File,
    Index,
    Missing,
    Neighbours,
    OutAnswers,
    Oversample,
    Overwrite,
    Queries,
    Unknown,
)
from nearkin.cli.screen import Screen, read_line, table

if TYPE_CHECKING:
    from nearkin.jobs.outputs import Answers

_SHOWN = 5  # queries in a table when no file takes them, with all their answers


def search(
    screen: Screen,
    index: Index,
    queries: Queries = None,
    k: Neighbours = 10,
    left_id: Annotated[list[str] | None, typer.Option(metavar="ID")] = None,
    with_seen: Annotated[bool, typer.Option("--with-seen")] = False,
    query_ids: File = None,
    among: File = None,
    exclude: File = None,
    oversample: Oversample = None,
    n_probe: Annotated[int | None, typer.Option("--n-probe", min=1)] = None,
    out: OutAnswers = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the nearest indexed vectors of every query.

    Without --out, the first queries' neighbours are shown (with --json, all of them). A folder of `nearkin embed` is
    searched exactly, by inner product for pairs, by distance for coordinates; as QUERIES it gives its left side.

    Examples:

    - nearkin search idx Q.npy -k 10 --out hits.csv
    - nearkin search idx Q.npy -k 10 --oversample 4 --out hits.parquet
    - nearkin search idx Q.npy -k 10 --among in_stock.txt --out hits.csv
    - nearkin search idx --left-id 42 -k 10

    Options:

    + left_id: An id of the left side of `nearkin train`, instead of QUERIES; may be repeated.
    + among: Search these ids only (in stock, in season), one a line.
    - exclude: Ids that may not be answers, one a line.
    - n_probe: Inverted lists to search: more raise recall and time. [default: a sixteenth, at least 16]
    """
    if (queries is None) == (not left_id):
        raise ValueError("give either QUERIES, a file of vectors, or --left-id, an id of `nearkin train`'s left side")
    if (among or exclude) and queries is None:
        raise ValueError(
            "--among and --exclude are for QUERIES; `nearkin recommend --candidates` limits the answers of left ids"
        )
    if out is not None:
        jobs.outputs.check_ending(out)
    steps = jobs.run.Steps(screen.watch)
    with steps.step("load"):
        opened = jobs.inputs.open_index(index)
        allowed, excluded = (
            None if file is None else jobs.change.as_own(nk.data.read_column(file), opened.ids)
            for file in (among, exclude)
        )
        if n_probe is not None:
            opened.n_probe = n_probe
        given = None if queries is None else jobs.inputs.open_queries(queries, query_ids)
    with steps.step("search") as callback:
        if given is None:
            names, about = left_id or [], ""
            found = jobs.recommend.recommend_folder(index, left_ids=names, k=k, with_seen=with_seen)[1]
            _, scores, ids = cast("Answers", found)  # returned, as no file takes them
        else:
            names, about = given.ids.tolist(), read_line(given.about)
            scores, ids = opened.search(
                given.vectors, k, among=allowed, exclude=excluded, oversample=oversample, callback=callback
            )
    seconds, metric = steps.seconds["search"], "l2" if oversample and opened.metric == "hamming" else opened.metric
    columns = [*jobs.outputs.COLUMNS[:3], jobs.outputs.SCORES[metric]]
    record: Record = {
        "index": index, "queries": len(names), "k": k, "among": among, "exclude": exclude,
        "oversample": oversample,
        "n_probe": opened.n_probe, "seconds": seconds, "per_second": len(names) / max(seconds, 1e-9),
        "threads": screen.threads, "out": out, "columns": columns,
    }  # fmt: skip
    if out is not None:
        jobs.outputs.write_answers(out, [(names, scores, ids)], columns)
    _present(screen, record, None if out is not None else (names, scores, ids), about, "hits")


def recommend(
    screen: Screen,
    folder: Embedding,
    left_ids: Annotated[list[str] | None, typer.Argument(metavar="ID")] = None,
    all_ids: Annotated[bool, typer.Option("--all")] = False,
    left_file: Annotated[str | None, typer.Option("--left-ids", metavar="FILE")] = None,
    history: File = None,
    k: Neighbours = 10,
    candidates: File = None,
    with_seen: Annotated[bool, typer.Option("--with-seen")] = False,
    index: Annotated[str | None, typer.Option(metavar="DIR")] = None,
    explain: Annotated[int | None, typer.Option(min=1)] = None,
    unknown: Unknown = "raise",
    missing: Missing = None,
    out: OutAnswers = None,
    overwrite: Overwrite = False,
) -> None:
    """Recommend the best matches for one, some or all ids, without known pairs.

    For a folder of `nearkin embed` made of pairs, or of `nearkin train`. Ids and columns are those of the table.

    Examples:

    - nearkin recommend emb --all --out recs.parquet
    - nearkin recommend emb u17 u18 -k 5 --explain 3
    - nearkin recommend emb --left-ids vips.txt --candidates in_stock.csv --out recs.csv
    - nearkin recommend emb --history new_users.csv --unknown drop --out recs.csv

    Options:

    - left_ids: Ids to recommend to, as in the table of pairs.
    + left_file: Recommend to the ids in this file, one a line.
    + candidates: Recommend these ids only (in stock, in season), one a line.
    - index: Rank by an index of `nearkin compress EMB --metric ip` instead.
    - explain: Column because_of: up to this many known pairs of the id that add most to each result's score.
    """
    read_ids = jobs.inputs.read_ids
    if sum(map(bool, (left_ids, all_ids, left_file, history))) != 1:
        raise ValueError("say who to recommend to: ids, or one of --all, --left-ids FILE, --history FILE")
    newcomers = None if history is None else jobs.inputs.read_history(history, folder, missing)
    record, answers = jobs.recommend.recommend_folder(
        folder,
        out=out,
        left_ids=left_ids or None if left_file is None else read_ids(left_file),
        history=newcomers,
        k=k,
        candidates=None if candidates is None else read_ids(candidates),
        with_seen=with_seen,
        index=index,
        explain=explain,
        unknown=unknown,
        steps=jobs.run.Steps(screen.watch),
    )
    _present(screen, record, answers, read_line(newcomers and newcomers.source))


def similar(
    screen: Screen,
    folder: Embedding,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID")] = None,
    all_ids: Annotated[bool, typer.Option("--all")] = False,
    k: Neighbours = 10,
    history: File = None,
    unknown: Unknown = "raise",
    missing: Missing = None,
    out: OutAnswers = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the most similar entities of some ids, or of all.

    Pairs: the right side by cosine ("who took this also takes"); EMB:left finds similar people. Comparisons: the
    objects at the smallest distance.

    Examples:

    - nearkin similar emb i42
    - nearkin similar emb --all -k 20 --out similar.parquet
    - nearkin similar emb --history new_items.csv
    - nearkin similar map lisbon

    Options:

    + ids: Ids to find similar ones of, as in the table.
    """
    if bool(ids) + all_ids + (history is not None) != 1:
        raise ValueError("say what to find similar ones of: ids, or one of --all, --history FILE")
    newcomers = None if history is None else jobs.inputs.read_history(history, folder, missing)
    record, answers = jobs.recommend.similar_folder(
        folder,
        out=out,
        ids=ids or None,
        k=k,
        history=newcomers,
        unknown=unknown,
        steps=jobs.run.Steps(screen.watch),
    )
    _present(screen, record, answers, read_line(newcomers and newcomers.source))


def _present(screen: Screen, record: Record, answers: "Answers | None", about: str, key: str = "answers") -> None:
    """All answers as JSON, the first ones as a table, or the file that holds them."""
    for note in record.get("notes", ()):
        screen.say(note)
    count = f"{counted(record['queries'], 'query', 'queries')} × {record['k']}"
    if answers is None:
        speed = f"{show(record['per_second'])} per second"
        screen.finish(record, f"{count}: {record['out']} ({', '.join(record['columns'])}; {speed})", about)
        return
    entries = jobs.outputs.as_records(answers, record["columns"])
    if screen.as_json:
        screen.finish(record | {key: entries})
        return
    rows = [
        [str(own), place, str(found), *more]
        for own, *parts in (entry.values() for entry in entries[:_SHOWN])
        for place, (found, *more) in enumerate(zip(*parts, strict=True), 1)
    ]
    made = table("Best first", record["columns"], rows)
    more = "" if len(entries) <= _SHOWN else f"The first {_SHOWN} of {count}; --out FILE keeps all."
    screen.finish(record, made, more, about)
