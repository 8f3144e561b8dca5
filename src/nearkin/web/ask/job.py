"""The whole of `nearkin ask`: from items to a page that collects answers until it is stopped."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from nearkin._storage import regular_file
from nearkin.data.tables import read_table
from nearkin.web.ask.app import Texts, ask_app
from nearkin.web.ask.items import Items
from nearkin.web.ask.survey import Plan, Survey
from nearkin.web.serving import LOCAL, run


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
    announce: Callable[[str], None],
) -> int:
    """Serve the page until Ctrl-C; returns how many answers there are. `announce` is told the links.

    A link is a secret: who has it may answer. Links stay the same when a survey is taken up. `raters` get links of
    their own. FileExistsError if `out` is there and not to be taken up.
    """
    out = Path(out)
    if out.exists() and not resume:
        raise FileExistsError(f"{out} exists; --resume goes on with it, or give another --out")
    survey = Survey(items, plan or Plan(), out)
    token, admin = survey.tokens
    address = f"http://{host}:{port}"
    announce(f"{len(items)} items, {len(survey.answered())} answers so far, kept in {out}")
    announce(f"For raters:  {address}/{token}/")
    for name in raters:
        announce(f"For {name}:  {address}/{token}/r/{survey.join(name).key}")
    announce(f"For you:     {address}/{admin}/results/")
    announce("Ctrl-C stops; --resume goes on.")
    try:
        with suppress(KeyboardInterrupt):  # the way to stop
            run(ask_app(survey, texts, host), host, port)
    finally:
        survey.close()
    return len(survey.answered())


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
