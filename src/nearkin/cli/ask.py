"""`nearkin ask`: a page that collects comparisons."""

from typing import Annotated

import typer

from nearkin._fields import Record
from nearkin.cli.options import Json, Seed
from nearkin.cli.screen import Screen
from nearkin.web import load


def ask(
    items: Annotated[
        str,
        typer.Argument(
            help="A folder of pictures or sounds, a table of names (.csv, .tsv, .parquet; columns id, text, image, "
            "sound, link), or the folder of an ordinal embedding.",
            metavar="ITEMS",
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="Table of the answers, a .csv.")],
    form: Annotated[
        str, typer.Option(metavar="NAME", help="triplet, odd-one-out (of three) or pairs (of two pairs).")
    ] = "triplet",
    raters: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Names, separated by commas: a link of its own for each.")
    ] = None,
    goal: Annotated[int | None, typer.Option(help="Answers that each rater is asked for.", min=1)] = None,
    title: Annotated[str, typer.Option(help="Title of the first page.")] = "",
    instructions: Annotated[str | None, typer.Option(metavar="FILE", help="Text of instructions.")] = None,
    consent: Annotated[
        str | None, typer.Option(metavar="FILE", help="Text that raters must agree to before they begin.")
    ] = None,
    catch: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Questions with a known answer: columns anchor, near, far (names of items)."),
    ] = None,
    random_share: Annotated[
        float, typer.Option(help="Questions at random that the model never learns from: its honest test.", min=0, max=1)
    ] = 0.2,
    active: Annotated[
        bool, typer.Option("--active/--no-active", help="Let a model choose the questions that teach most.")
    ] = True,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the table's first line names its columns.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the answers that are in --out already.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for the whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 for any free one.", min=0, max=65535)] = 8765,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Ask people which of two things is more like a third, on a page for phone and desk.

    Prints a link for raters and one for you (map, error and raters so far). Every answer is on disk before the page
    goes on: `--out` holds one line an answer, as `nearkin embed` reads it, and FILE.journal all that happened, also
    questions that nobody could answer and answers that were undone. Stop with Ctrl-C; `--resume` goes on. `--json`
    prints one record with the links when the page is there, and one with the counts at the end.

    Examples:

    - nearkin ask pictures/ --out answers.csv
    - nearkin ask cities.csv --out answers.csv --raters anna,ben --goal 200
    - nearkin embed answers.csv --out map
    """
    screen, page = Screen(as_json), load("ask")
    things = page.read_items(items, header=header)
    questions = () if catch is None else page.read_catch(catch, things)
    said = {
        name: "" if file is None else page.read_text(file)
        for name, file in (("instructions", instructions), ("consent", consent))
    }
    ended = page.collect(
        things,
        out,
        page.Plan(form=form, random_share=random_share, active=active, seed=seed, catch=questions),
        texts=page.Texts(title=title, goal=goal, **said),
        raters=[name.strip() for name in raters.split(",")] if raters else (),
        resume=resume,
        host=host,
        port=port,
        announce=lambda record: screen.finish(record, *_lines(record)),
    )
    screen.finish(ended, f"{ended['answers']} answers in {out}. Next: nearkin embed {out} --out map")


def _lines(record: Record) -> list[str]:
    links = record["links"]
    return [
        f"{record['items']} items, {record['answers']} answers so far, kept in {record['out']}",
        f"For raters:  {links['raters']}",
        *(f"For {name}:  {link}" for name, link in links["named"].items()),
        f"For you:     {links['results']}",
        "Ctrl-C stops; --resume goes on.",
    ]
