"""`nearkin explore` and `nearkin ask`: the jobs that serve pages."""

from collections.abc import Callable
from pathlib import Path

from nearkin._fields import Record, command
from nearkin.jobs import arguments, outputs
from nearkin.web import load


def explore(
    index: arguments.Folder,
    *,
    vectors: arguments.File | None = None,
    labels: arguments.File | None = None,
    texts: arguments.File | None = None,
    images: arguments.Place | None = None,
    ids_column: str | None = None,
    compare: arguments.Folder | None = None,
    k: int = 10,
    out: arguments.File | None = None,
    rows: int = 3000,
    overwrite: bool = False,
    host: str = "127.0.0.1",
    port: int = 8766,
    announce: Callable[[Record], None] = print,
) -> Record:
    """See an index: a map of its vectors, and the neighbours of each before and after compression.

    Prints a link to a page on this computer. Click a point, or search it by id or text: the page lists its exact
    neighbours and those that the codes find, as in `nearkin search`, and marks lost and new ones; a slider adds
    rescoring. The map is coloured by any column, error, list, or neighbours lost; filters by columns, a box or a line
    select items to save as CSV. Stop with Ctrl-C.

    Examples:

    - nearkin explore idx --labels labels.txt
    - nearkin explore idx --vectors X.npy --images pictures/ --compare smaller
    - nearkin explore idx --texts items.csv --ids-column id --out page.html

    Parameters
    ----------
    index: The folder that `nearkin compress` wrote.
    vectors: The vectors it was made of, for an index that keeps none.
    labels: A label for every indexed vector, in order (file.csv:column).
    texts: A text for every vector, in order.
    images: A folder of pictures called as the ids, or an array (n, h, w) of uint8: .npy, .npz:key.
    ids_column: Column of ids in the tables of `labels` and `texts`, in any order; all their columns are shown.
    compare: Another index of the same vectors, shown next to it.
    k: Neighbours of each query.
    out: File to write, one HTML page that needs no network; then stop.
    rows: Vectors in that file; of more, a random sample of this size.
    overwrite: Replace what is there: a file, or a folder that nearkin wrote and that holds nothing else.
    host: Address to listen at; 0.0.0.0 for the whole network.
    port: Port to listen at; 0 for any free one.
    """
    page = load("explore")
    outputs.check_file(out, overwrite, [index, vectors, labels, texts, images, compare])
    collection = page.open_collection(
        index, vectors=vectors, labels=labels, texts=texts, images=images, ids_column=ids_column, compare=compare, k=k
    )
    title = Path(index).resolve().name
    if out is None:
        return page.serve(collection, title, host=host, port=port, announce=announce)
    count = page.write_page(collection, title, out, most=rows)
    return {"out": str(out), "rows": len(collection), "rows_on_the_page": count}


def ask(
    items: arguments.Place,
    *,
    out: arguments.File,
    form: str = "triplet",
    names: str | None = None,
    goal: int | None = None,
    max_raters: int | None = None,
    finish: str = "",
    study: str = "en",
    catch: arguments.File | None = None,
    resume: bool = False,
    host: str = "127.0.0.1",
    port: int = 8765,
    seed: int = 0,
    announce: Callable[[Record], None] = print,
) -> Record:
    """Ask people which of two things is more like a third, on a page for phone and desk.

    Prints a link for raters and one for you (map, error and raters so far). Raters first read what is asked, how long
    it takes and what is stored, and agree. Every answer is on disk before the page continues: OUT holds one line an
    answer, as `nearkin embed` reads it, and OUT.journal all that happened, also questions that nobody could answer and
    answers that were undone. Stop with Ctrl-C; `resume` continues. One record with the links is printed when the page
    is there, and one with the counts, the error and who is left out at the end.

    Examples:

    - nearkin ask pictures/ --out answers.csv
    - nearkin ask cities.csv --out answers.csv --names anna,ben --goal 200
    - nearkin ask pictures/ --out answers.csv --goal 100 --max-raters 50 --finish C0DE42 --study study.toml
    - nearkin embed answers.csv --out map

    Parameters
    ----------
    items: A folder of pictures or sounds, a table of names (.csv, .tsv, .parquet; columns id, text, image, sound,
        link), or the folder of an ordinal embedding.
    out: File to write: the table of answers, a .csv.
    form: triplet, odd-one-out (of three) or pairs (of two pairs).
    names: Names of raters, separated by commas: one link for each.
    goal: Number of answers of each rater.
    max_raters: Number of raters after which nobody else may begin.
    finish: After `goal` answers, a completion code to show or an address to go to; {NAME} in it is a parameter.
    study: Language of the page, de, en, es, fr or zh, or a TOML file: title, instructions, consent, fields to fill in,
        any text of the page, and rules (practice, breaks, least time, most answers, share of random questions).
    catch: Questions with a known answer: columns anchor, near, far (names of items). Each rater gets three of them, or
        the rule n_catch, at random places.
    resume: Continue with the answers in `out`.
    host: Address to listen at; 0.0.0.0 for the whole network.
    port: Port to listen at; 0 for any free one.
    seed: Seed of everything random: the same seed gives the same result.
    """
    page = load("ask")
    things = page.read_items(items)
    known = () if catch is None else page.read_catch(catch, things)
    settings = {"form": form, "catch": known, "goal": goal, "finish": finish, "max_raters": max_raters, "seed": seed}
    plan = page.read_study(study, **settings)
    raters = [name.strip() for name in names.split(",")] if names else ()
    place = {"resume": resume, "host": host, "port": port, "announce": announce}
    ended = page.collect(things, out, plan, names=raters, **place)
    return ended | {"next": [command("embed", out, out="map")]}
