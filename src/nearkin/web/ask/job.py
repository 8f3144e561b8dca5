"""The whole of `nearkin ask`: from items to a page that collects answers until it is stopped."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from nearkin._storage import regular_file
from nearkin._types import Record
from nearkin.data.tables import read_table
from nearkin.web.ask.app import Texts, ask_app
from nearkin.web.ask.items import Items
from nearkin.web.ask.survey import Plan, Survey, journal_path
from nearkin.web.serving import LOCAL, listening, run, until_stopped


def collect(
    items: Items,
    out: str | os.PathLike,
    plan: Plan | None = None,
    *,
    texts: Texts | None = None,
    raters: Sequence[str] = (),
    resume: bool = False,
    host: str = LOCAL,
    port: int = 8765,
    announce: Callable[[Record], None],
) -> Record:
    """Serve the page until Ctrl-C or SIGTERM; returns the files and the numbers of items, answers and raters.

    Once the page is there, `announce` is called with the same and the links: "raters", "results", and "named" for
    each of `raters`. A link is a secret: who has it may answer. Links stay the same when a survey is resumed.
    FileExistsError if `out` or its journal exists and `resume` is False.
    """
    out = Path(out)
    if not resume and (old := next((path for path in (out, journal_path(out)) if path.exists()), None)):
        raise FileExistsError(f"{old} exists; --resume goes on with it, or give another --out")
    with listening(host, port) as at, closing(Survey(items, plan or Plan(), out)) as survey, until_stopped():
        page, results = (f"http://{host}:{at.getsockname()[1]}/{token}" for token in survey.tokens)
        named = {name: f"{page}/r/{survey.join(name).key}" for name in raters}
        links = {"raters": f"{page}/", "results": f"{results}/results/", "named": named}
        announce(_counts(survey) | {"links": links})
        run(ask_app(survey, texts, host), at)
    return _counts(survey)


def _counts(survey: Survey) -> Record:
    return {
        "out": str(survey.out),
        "journal": str(survey.journal.path),
        "items": len(survey.items),
        "answers": len(survey.answered()),
        "raters": len(survey.raters),
    }


def read_catch(path: str | os.PathLike, items: Items) -> tuple[tuple[int, int, int], ...]:
    """Questions with a known answer, columns anchor, near, far: names of items. ValueError for a name that is none."""
    numbers = {name: number for number, name in enumerate(items.ids)}
    columns = read_table(path).columns
    missing = {"anchor", "near", "far"} - columns.keys()
    if missing:
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; it needs anchor, near, far")
    rows = list(zip(*([str(v) for v in columns[name].values] for name in ("anchor", "near", "far")), strict=True))
    unknown = {name for row in rows for name in row} - numbers.keys()
    if unknown:
        raise ValueError(f"{path} names {sorted(unknown)[0]!r}, which is no item")
    return tuple((numbers[a], numbers[b], numbers[c]) for a, b, c in rows)


def read_text(path: str | os.PathLike) -> str:
    """A text file in UTF-8; ValueError for other bytes."""
    try:
        return regular_file(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error
