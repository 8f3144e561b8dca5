"""`nearkin demo`, `report`, `explore` and `ask`: pages for people."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin import jobs
from nearkin._fields import Record, command, counted
from nearkin.cli.options import File, Host, Index, OutPage, Overwrite, Seed
from nearkin.cli.screen import Screen, table
from nearkin.web import load


def report(
    screen: Screen,
    folders: Annotated[list[str], typer.Argument(metavar="FOLDER")],
    out: OutPage = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a self-contained HTML page about a folder: how it was made, what it costs, its recall.

    It includes the result of `nearkin evaluate`, and compares several indexes. The page needs no network and can be
    mailed. Without --out it is FOLDER/report.html.

    Examples:

    - nearkin report idx --out report.html
    - nearkin report emb
    - nearkin report idx8 idx16 idx32 --out compared.html

    Options:

    - folders: A folder that nearkin wrote: an index, vectors or a map; or several indexes.
    """
    if len(folders) > 1 and out is None:
        raise ValueError("several folders go into one report; say where with --out FILE")
    pages = jobs.pages
    if out is None:
        path = pages.write_report(folders[0], overwrite)
    else:
        path, page = out, pages.folder_page(folders[0]) if len(folders) == 1 else pages.comparison_page(folders)
        page.write(path)
    screen.finish({"folder": folders[0], "folders": folders, "report": str(path)}, f"Report: {path}")


def demo(
    screen: Screen,
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR")] = "demo",
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Search 1,500 handwritten digits exactly and through codes of 2 to 16 bytes, and write a report.

    Takes a few seconds and no download: the images ship with scikit-learn.

    Examples:

    - nearkin demo
    - nearkin demo --out digits --json

    Options:

    + out: Folder to write.
    """
    trials, explore = jobs.demo.save_demo(out, seed, jobs.run.Steps(screen.watch), overwrite=overwrite)
    path = jobs.pages.write_report(out)
    rows = [list(trial.values()) for trial in trials]
    made = table("1,500 handwritten digits, 297 queries", [name.replace("_", " ") for name in trials[0]], rows)
    record = {"seed": seed, "threads": screen.threads, "trials": trials, "report": str(path), "explore": explore}
    screen.finish(record, made, f"Report: {path}", "See the digits and their neighbours at 4 bytes:", explore)


def explore(
    screen: Screen,
    index: Index,
    vectors: File = None,
    labels: File = None,
    texts: File = None,
    images: Annotated[str | None, typer.Option(metavar="DIR|FILE")] = None,
    ids_column: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    compare: Annotated[str | None, typer.Option(metavar="DIR")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=100)] = 10,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE")] = None,
    rows: Annotated[int, typer.Option(min=4)] = 3000,
    overwrite: Overwrite = False,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8766,
) -> None:
    """See an index: a map of its vectors, and the neighbours of each before and after compression.

    Prints a link to a page on this computer. Click a point, or search it by id or text: the page lists its exact
    neighbours and those that the codes find, as in `nearkin search`, and marks lost and new ones; a slider adds
    rescoring. The map is coloured by any column, error, list, or neighbours lost; filters by columns, a box or a line
    select items to save as CSV. Stop with Ctrl-C.

    Examples:

    - nearkin explore idx --labels labels.txt
    - nearkin explore idx --vectors X.npy --images pictures/ --compare smaller
    - nearkin explore idx --texts items.csv --ids-column id --out page.html

    Options:

    + vectors: The vectors it was made of, for an index without --keep-vectors.
    + images: A folder of pictures called as the ids, or an array (n, h, w): .npy, .npz:key.
    - ids_column: Column of ids in the tables --labels and --texts, in any order; all their columns are shown.
    + compare: Another index of the same vectors, shown next to it.
    + out: File to write, one HTML page that needs no network; then stop.
    - rows: Vectors in that file; of more, a random sample of this size.
    """
    page = load("explore")
    collection = page.open_collection(
        index, vectors=vectors, labels=labels, texts=texts, images=images, ids_column=ids_column, compare=compare, k=k
    )
    title = Path(index).resolve().name
    if out is not None:
        count = page.write_page(collection, title, out, most=rows)
        text = f"{out}: {count:,} of {counted(len(collection), 'vector')}. It opens in any browser, without a network."
        screen.finish({"out": out, "rows": len(collection), "rows_on_the_page": count}, text)
        return

    def announce(record: Record) -> None:
        screen.finish(record, f"Open  {record['link']}", "Ctrl-C stops.")

    screen.finish(page.serve(collection, title, host=host, port=port, announce=announce))


def ask(
    screen: Screen,
    items: Annotated[str, typer.Argument(metavar="ITEMS")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE")],
    form: Annotated[str, typer.Option(metavar="NAME")] = "triplet",
    names: Annotated[str | None, typer.Option(metavar="NAMES")] = None,
    goal: Annotated[int | None, typer.Option(min=1)] = None,
    max_raters: Annotated[int | None, typer.Option(min=1)] = None,
    finish: Annotated[str, typer.Option(metavar="CODE|ADDRESS")] = "",
    study: Annotated[str, typer.Option(metavar="LANG|FILE")] = "en",
    catch: File = None,
    resume: Annotated[bool, typer.Option("--resume")] = False,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8765,
    seed: Seed = 0,
) -> None:
    """Ask people which of two things is more like a third, on a page for phone and desk.

    Prints a link for raters and one for you (map, error and raters so far). Raters first read what is asked, how long
    it takes and what is stored, and agree. Every answer is on disk before the page continues: `--out` holds one line an
    answer, as `nearkin embed` reads it, and FILE.journal all that happened, also questions that nobody could answer and
    answers that were undone. Stop with Ctrl-C; `--resume` continues. `--json` prints one record with the links when the
    page is there, and one with the counts, the error and who is left out at the end.

    Examples:

    - nearkin ask pictures/ --out answers.csv
    - nearkin ask cities.csv --out answers.csv --names anna,ben --goal 200
    - nearkin ask pictures/ --out answers.csv --goal 100 --max-raters 50 --finish C0DE42 --study study.toml
    - nearkin embed answers.csv --out map

    Options:

    - items: A folder of pictures or sounds, a table of names (.csv, .tsv, .parquet; columns id, text, image, sound,
      link), or the folder of an ordinal embedding.
    + out: File to write: the table of answers, a .csv.
    - form: triplet, odd-one-out (of three) or pairs (of two pairs).
    + names: Names of raters, separated by commas: one link for each.
    + goal: Number of answers of each rater.
    - max_raters: Number of raters after which nobody else may begin.
    - finish: After --goal answers, a completion code to show or an address to go to; {NAME} in it is a parameter.
    + study: Language of the page, de, en, es, fr or zh, or a TOML file: title, instructions, consent, fields to fill
      in, any text of the page, and rules (practice, breaks, least time, most answers, share of random questions).
    - catch: Questions with a known answer: columns anchor, near, far (names of items). Each rater gets three of them,
      or the rule n_catch, at random places.
    + resume: Continue with the answers in --out.
    """
    page = load("ask")
    things = page.read_items(items)
    questions = () if catch is None else page.read_catch(catch, things)
    texts, rules = page.read_study(study, goal=goal, finish=finish)
    plan = page.Plan(form, catch=questions, max_raters=max_raters, seed=seed, **rules)

    def announce(record: Record) -> None:
        links = record["links"]
        screen.finish(
            record,
            f"{counted(record['items'], 'item')}, {counted(record['answers'], 'answer')} so far, in {record['out']}",
            f"For raters:  {links['raters']}",
            *(f"For {name}:  {link}" for name, link in links["named"].items()),
            f"For you:     {links['results']}",
            "Ctrl-C stops; --resume goes on.",
        )

    raters = [name.strip() for name in names.split(",")] if names else ()
    place = {"resume": resume, "host": host, "port": port, "announce": announce}
    ended = page.collect(things, out, plan, texts=texts, raters=raters, **place)
    screen.finish(ended, f"{ended['summary']}, in {out}.", ended["rule"], f"Next: {command('embed', out, out='map')}")
