"""The page as one HTML file: its code, its rows and all their answers inside, nothing loaded from anywhere."""

import base64
import hashlib
import json
import re

import numpy as np

from nearkin._types import Record
from nearkin.web.explore.explorer import Explorer
from nearkin.web.serving import static_text

MOST = 3_000  # rows on a page to mail; it takes about a kilobyte for each
_BATCH = 64


def single_page(explorer: Explorer) -> str:
    """The whole page of an explorer whose measures are complete.

    A policy in the page forbids all code but its own, by checksum, and everything from outside.
    """
    data = json.dumps(_data(explorer)).replace("<", "\\u003c")  # no text of other people can end the element
    page = static_text("explore.html")
    styles = [static_text(name) for name in re.findall(r'<link rel="stylesheet" href="/static/([\w.]+)">', page)]
    scripts = [static_text(name) for name in re.findall(r'<script src="/static/([\w.]+)"></script>', page)]
    style, script = "\n".join(styles), "\n".join(scripts)
    policy = (
        f"default-src 'none'; script-src '{_checksum(script)}'; style-src '{_checksum(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head, _, rest = page.partition("<head>")
    rest = re.sub(r'<(link rel="stylesheet"|script src=)[^\n]*\n', "", rest)
    rest = rest.replace("</head>", f"<style>{style}</style>\n</head>")
    body, _, tail = rest.rpartition("</body>")
    return (
        f'{head}<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">{body}'
        f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>\n</body>{tail}'
    )


def _checksum(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _data(explorer: Explorer) -> Record:
    measures, collection = explorer.measures, explorer.collection
    answers, rows = {}, measures.rows.tolist()
    for first in range(0, len(rows), _BATCH):
        some = rows[first : first + _BATCH]
        answers |= dict(zip(some, collection.answers_of_rows(np.array(some)), strict=True))
    used = sorted({*rows, *(row for answer in answers.values() for row in answer.rows())})
    pictures = collection.beside.pictures
    shown = [] if pictures is None else [row for row in used if pictures.has(row)]
    names = ["rows", *measures.layouts, *measures.colours]
    return {
        "about": explorer.about() | {"left": None},  # a file answers for rows only
        "columns": {name: _base64(explorer.column(name) or b"") for name in names},
        "answers": {row: answer.record() for row, answer in answers.items()},
        "named": explorer.named(used),
        "worst": explorer.worst(),
        "pictures": {} if pictures is None else {row: _base64(pictures.png(row)) for row in shown},
        "sweep": {}
        if explorer.swept is None
        else {
            f"{name}{'-dark' if dark else ''}": _base64(explorer.swept.picture(name, dark) or b"")
            for name in ("bytes", "speed")
            for dark in (False, True)
        },
    }


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
