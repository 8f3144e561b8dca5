"""The field's words in `--help` and in what commands print; `python -m tests.cli.test_words` lists the others."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nearkin.cli
from nearkin.cli.app import PANELS, app
from nearkin.cli.options import HELP

INSTEAD = {  # pattern -> the field's word
    r"rows?": "vectors, items, users, queries",
    r"lengths?": "norm",
    r"(un)?learn(s|ed|t|ing)?": "train",
    r"race": "model selection, comparison",
    r"by codes? alone|alone|(rank(s|ed)?|ranking) .{0,20}again": "without / with rescoring",
    r"keeps? (of|more|them|for)|kept for|neighbours kept|that it keeps": "recall@10",
    r"coarse|cells to": "inverted lists",
    r"lefts|rights|(left|right) (rows|ones)": "users, items",
    r"judg(e|es|ed|ing)": "evaluate",
    r"answers? (to|of) (a |the )?(search|quer)\w*|pairs are answers": "results",
}
ALLOWED = (  # rows of tables and files of text, which are no vectors
    "--rows", "- rows:",
    "{rows:,}", "scikit-learn", "learned from", "Learn what is near", "rows of smaller weight",
    "Rows in that file", "of more rows", "rows without an answer", "row numbers",
    "judged quer", "Relevance judgements",
)  # fmt: skip
BANNED = {instead: re.compile(rf"\b({pattern})\b", re.IGNORECASE) for pattern, instead in INSTEAD.items()}


def texts() -> Iterator[tuple[str, str]]:
    """Help of all commands, then every text with a blank in the modules of the command line: what they print."""
    yield "options.py", HELP
    yield "app.py", str(app.registered_callback and app.registered_callback.callback.__doc__)
    for command in (command for panel in PANELS.values() for command in panel):
        yield command.__name__, str(command.__doc__)
    for path in sorted(Path(nearkin.cli.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        apart = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
                yield from [(f"{path.name}:{node.lineno}", node.value)] * (" " in node.value and node.value != HELP)


def found() -> Iterator[str]:
    for where, text in texts():
        text = " ".join(text.split())
        for allowed in ALLOWED:
            text = text.replace(allowed, "")
        for instead, pattern in BANNED.items():
            for match in pattern.finditer(text):
                around = text[max(0, match.start() - 40) : match.end() + 30]
                yield f"{where}: {match[0]!r} in ...{around}...: write {instead}"


def test_commands_speak_the_fields_words() -> None:
    assert not list(found()), "\n".join(found())


if __name__ == "__main__":
    print("\n".join(found()))
