"""The whole of `nearkin explore`: serve the page until Ctrl-C, write it as one file, or show it in a notebook."""

import html
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearkin._storage import replacing
from nearkin._types import Record
from nearkin.index import Index
from nearkin.web.explore.app import explore_app
from nearkin.web.explore.beside import Pictures
from nearkin.web.explore.collection import Beside, Collection
from nearkin.web.explore.explorer import Explorer
from nearkin.web.explore.measures import Measures
from nearkin.web.explore.opening import collect_rows
from nearkin.web.explore.page import MOST, single_page
from nearkin.web.explore.swept import Swept
from nearkin.web.serving import LOCAL, listening, new_token, run, until_stopped


def serve(
    collection: Collection,
    title: str,
    swept: Swept | None = None,
    *,
    host: str = LOCAL,
    port: int = 8766,
    announce: Callable[[Record], None],
) -> Record:
    """Serve the page until Ctrl-C or SIGTERM; returns the number of rows and what was measured of each index.

    Once the page is there, `announce` is called with its link, which is a secret.
    """
    with listening(host, port) as at, closing(Measures(collection)) as measures, until_stopped():
        explorer, token = Explorer(title, collection, measures, swept), new_token()
        measures.start()
        announce({"link": f"http://{host}:{at.getsockname()[1]}/{token}/", "rows": len(collection)})
        run(explore_app(explorer, token, host), at)
    about = explorer.about()
    return {name: about[name] for name in ("rows", "k", "metric", "indexes")}


def write_page(
    collection: Collection, title: str, out: str | os.PathLike, swept: Swept | None = None, *, most: int = MOST
) -> int:
    """Write the page as one HTML file that needs no network; returns how many rows are on it.

    Of more than `most` rows so many are drawn at random; their neighbours are those among all rows.
    """
    out = Path(out)
    if out.is_dir() or out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"out is {out}; it must be the name of a file that ends in .html")
    text, rows = _written(collection, title, swept, most)
    with replacing(out) as fresh:
        fresh.write_text(text, encoding="utf-8")
    return rows


@dataclass(frozen=True)
class NotebookPage:
    """The page as a notebook shows it; `html` is the whole of it."""

    html: str

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="nearkin explore" srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-forms" '
            'style="width:100%;height:46rem;border:0"></iframe>'
        )


def explore(
    index: Index,
    vectors: np.ndarray | None = None,
    *,
    labels: np.ndarray | None = None,
    texts: np.ndarray | None = None,
    images: np.ndarray | None = None,
    compare: Index | None = None,
    k: int = 10,
    most: int = 1_000,
) -> NotebookPage:
    """The page of `nearkin explore` for the last line of a notebook's cell.

    vectors (n, d): the exact rows, where the index keeps none. labels, texts (n,), images (n, h, w[, 3]): one for each
    row. compare: another index over the same rows. Of more than `most` rows so many are drawn at random; their
    neighbours are those among all rows. ValueError for arrays of another length.
    """
    for name, values in (("labels", labels), ("texts", texts), ("images", images)):
        if values is not None and len(values) != len(index):
            raise ValueError(f"{name} has {len(values)} values and the index {len(index)} rows; give one for each")
    beside = Beside(
        None if labels is None else np.asarray(labels).astype(str),
        None if texts is None else np.asarray(texts).astype(str),
        None if images is None else Pictures(np.asarray(images)),
    )
    rows = None if vectors is None else np.ascontiguousarray(vectors, np.float32)
    collection = collect_rows(index, rows, beside, other=compare, k=k)
    return NotebookPage(_written(collection, "index", None, most)[0])


def _written(collection: Collection, title: str, swept: Swept | None, most: int) -> tuple[str, int]:
    measures = Measures(collection, most)
    measures.run()
    return single_page(Explorer(title, collection, measures, swept)), len(measures.rows)
