"""`nearkin explore`: a page that shows an index and what its codes keep."""

from pathlib import Path
from typing import Annotated

import typer

from nearkin.cli.options import Index, Json
from nearkin.cli.screen import Screen
from nearkin.web import load


def explore(
    index: Index,
    vectors: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The vectors it was made of, for an index without --keep-vectors."),
    ] = None,
    labels: Annotated[str | None, typer.Option(metavar="FILE", help="A label for every indexed row, in order.")] = None,
    texts: Annotated[str | None, typer.Option(metavar="FILE", help="A text for every indexed row, in order.")] = None,
    images: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE", help="A folder of pictures called as the ids, or an array (n, h, w): .npy, .npz:key."
        ),
    ] = None,
    ids_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Column of ids in the tables --labels and --texts: rows in any order."),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Another index of the same vectors, shown beside.")
    ] = None,
    sweep: Annotated[
        str | None, typer.Option(metavar="FILE", help="What `nearkin sweep ... --json` printed: shown as pictures.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Neighbours of each row.", min=1, max=100)] = 10,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write one HTML file that needs no network, and stop."),
    ] = None,
    rows: Annotated[int, typer.Option(help="Rows in that file; of more so many are drawn at random.", min=4)] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 for the whole network.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 for any free one.", min=0, max=65535)] = 8766,
    as_json: Json = False,
) -> None:
    """See an index: a map of its rows, and each row's neighbours before and after compression.

    Prints a link to a page on this computer. Click a row, or search it by id or text: its exact neighbours stand beside
    those that the codes find, as `nearkin search` gives them, with what was lost and gained; a slider shows what
    rescoring brings back. The map is coloured by label, quantization error, list, or neighbours lost. Stop with Ctrl-C.

    Examples:

    - nearkin explore idx --labels labels.txt
    - nearkin explore idx --vectors X.npy --images pictures/ --compare smaller
    - nearkin explore idx --texts items.csv --ids-column id --out page.html
    """
    screen, page = Screen(as_json), load("explore")
    measured = None if sweep is None else page.read_sweep(sweep)
    collection = page.open_collection(
        index, vectors=vectors, labels=labels, texts=texts, images=images, ids_column=ids_column, compare=compare, k=k
    )
    title = Path(index).resolve().name
    if out is not None:
        count = page.write_page(collection, title, out, measured, most=rows)
        text = f"{out}: {count:,} of {len(collection):,} rows. It opens in any browser, without a network."
        screen.finish({"out": out, "rows": len(collection), "rows_on_the_page": count}, text)
        return
    ended = page.serve(
        collection,
        title,
        measured,
        host=host,
        port=port,
        announce=lambda record: screen.finish(record, f"Open  {record['link']}", "Ctrl-C stops."),
    )
    screen.finish(ended)
