"""Text of strangers: nested JSON, cells made for a parser's worst case, long cells; their cost, and the messages."""

import gzip
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

import nearkin as nk
import nearkin.data
from nearkin._json import MAX_DEPTH, check_depth, parsed_json
from nearkin.data import read_column, read_features, read_judgements, read_neighbors
from nearkin.data.tables import read_table
from tests.covering import each

DEEP = MAX_DEPTH + 1
READERS: dict[str, Callable[[Path], object]] = {
    "vectors": nk.read_vectors,
    "pairs": nk.read_interactions,
    "comparisons": nk.read_comparisons,
    "column": read_column,
    "features": read_features,
    "judgements": read_judgements,
    "neighbours": read_neighbors,
}


@each(
    "text", ["[" * DEEP, '{"a":' * DEEP, "[\n" * DEEP, "]" * 9 + "[" * DEEP, '"\\\\"' + "[" * DEEP, '"\n' + "[" * DEEP]
)
def test_deep_json_is_refused_before_a_parser_sees_it(text: str) -> None:
    with pytest.raises(ValueError, match=f"has {DEEP} lists and objects inside each other"):
        check_depth(text.encode())


@each(
    "text",
    [
        '["' + "[" * 999 + '"]',
        '{"a\\"[' + "{" * 999 + '": 1}',
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
        "[[],[]" + ",[]" * 999 + "]",
    ],
)
def test_brackets_in_text_and_side_by_side_are_not_deep(text: str) -> None:
    parsed_json(text)


@each("ending", [".jsonl", ".ndjson", ".jsonl.gz"])
@each("start", ['{"id": 1, "vector": ', '{"user": "a", "item": "b", "x": '])
def test_deep_files_are_errors(ending: str, start: str, tmp_path: Path) -> None:
    """20,000 brackets ended the process."""
    path, text = tmp_path / f"a{ending}", (start + "[" * 20_000 + "]" * 20_000 + "}\n").encode()
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    for read in (nk.read_vectors, nk.read_interactions, read_table):
        with pytest.raises(ValueError, match=r"20,00\d lists and objects inside each other") as caught:
            read(path)
        assert len(str(caught.value)) <= 500


def test_deep_saved_files_are_errors(tmp_path: Path) -> None:
    nk.Index.build([[0.0, 1.0], [1.0, 0.0]]).save(tmp_path / "idx")
    for name in ("config.json", "manifest.json"):
        kept = (tmp_path / "idx" / name).read_text()
        (tmp_path / "idx" / name).write_text("[" * 9_000)
        with pytest.raises(ValueError, match="9,000 lists and objects") as caught:
            nk.Index.load(tmp_path / "idx")
        assert len(str(caught.value)) <= 500
        (tmp_path / "idx" / name).write_text(kept)


def test_no_other_parser_of_json_reads_files() -> None:
    source = Path(nk.__file__).parent
    own = {"_json.py", "_distributed.py", "_estimators.py"}  # the last two read what this process wrote
    assert [path for path in source.rglob("*.py") if "json.load" in path.read_text() and path.name not in own] == []


def patterns() -> Iterator[re.Pattern[str]]:
    for found in pkgutil.walk_packages(nearkin.data.__path__, "nearkin.data."):
        for value in vars(importlib.import_module(found.name)).values():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                yield value


PARTS = (
    "9", "9 ", "1.", "1,", "1,000,", "a", " ", '"', '""', "_", "-", "[", "]", "(", "array([", "],x=", ", a=", "np.a(",
    "1:1 ", "\t", "1e", "1|", "=", "1 ,", "9.9", "$", "a,b",
)  # fmt: skip


def test_patterns_are_linear() -> None:
    """A number of 10,000 digits took 10 s: `\\d+\\.?\\d*` tries each way to share them out."""
    texts = [a + part * 3_000 + b for part, a, b in product(PARTS, ("", "array(", "[", "1"), ("", "x", "\n!", " \0"))]
    assert set(patterns())
    for pattern in set(patterns()):
        start = time.process_time()
        for text in texts:
            pattern.fullmatch(text)
            pattern.match(text)
        assert time.process_time() - start < 1, pattern.pattern  # .1 s; a quadratic one takes several


@each("reader", READERS)
def test_long_cells_are_cut_in_messages(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for part in ("9", "a", '""', "array([", "1|"):
        long = part * 2_000
        for text in (f"{long}\n{long}\n", f"a,b,c\n1,2,{long}\n3,4,5\n", f"{long},2,3\n4,5,6\n"):
            path.write_text(text)
            start, said = time.process_time(), ""
            try:
                READERS[reader](path)
            except (ValueError, TypeError) as error:
                said = str(error)
            assert len(said) <= 500, (part, text[:20])
            assert time.process_time() - start < 3, (part, text[:20])  # .1 s
