"""JSON of files and requests, which may be a stranger's: parsers recurse, so its depth is looked at first."""

import json
import re
from typing import Any

import numpy as np

MAX_DEPTH = 128  # lists and objects inside each other
_STRING = re.compile(rb'"(?:[^"\\\n]++|\\[^\n])*+"?')
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_depth(data: bytes) -> None:
    """ValueError for JSON, or lines of JSON, of more than `MAX_DEPTH` lists and objects inside each other."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    brackets = np.frombuffer(_STRING.sub(b"", data).translate(None, _NO_BRACKETS), np.uint8)
    level = np.cumsum(np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1))
    depth = int((level - np.minimum.accumulate(np.minimum(level, 0))).max(initial=0))
    if depth > MAX_DEPTH:
        raise ValueError(f"its JSON has {depth:,} lists and objects inside each other; at most {MAX_DEPTH} are read")


def parsed_json(data: bytes | str) -> Any:
    """The value of JSON in UTF-8; ValueError for anything else, and as of `check_depth`."""
    text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    check_depth(data if isinstance(data, bytes) else text.encode("utf-8", "surrogatepass"))
    return json.loads(text)
