"""How `recommend` and `similar` show their answers."""

import numpy as np

from nearkin._fields import Record
from nearkin.cli.screen import Screen, show, table
from nearkin.pipeline.recommend.recommend import Answer, as_records

_SHOWN, _PLACES = 5, 5  # who asks, and answers of each, in the table when no file takes them


def present(screen: Screen, record: Record, answers: Answer | None, k: int, last_line: str = "") -> None:
    """The record with all answers as JSON; for people where they are, or the first ones."""
    count = f"{record['queries']:,} × {k}"
    if answers is None:
        speed = f"{show(record['per_second'])} a second"
        screen.finish(record, f"{count}: {record['out']} ({', '.join(record['columns'])}; {speed})", last_line)
        return
    if screen.as_json:
        screen.finish(record | {"answers": as_records(answers, record["columns"])})
        return
    who, scores, ids = answers
    places = [f"#{place}" for place in range(1, min(ids.shape[1], _PLACES) + 1)]
    shown = np.where(np.isfinite(scores), ids.astype(str), "")[:_SHOWN, : len(places)]
    rows = [[str(name), *cells] for name, cells in zip(who, shown.tolist(), strict=False)]
    more = "" if len(who) <= _SHOWN and k <= _PLACES else f"{count} in all; --out FILE keeps them."
    screen.finish(record, table("Best first", [record["columns"][0], *places], rows), more, last_line)
