"""Sphinx: `make docs` builds these pages into docs/_build, warnings as errors and without the network."""

import inspect
import re
from importlib.metadata import version as installed
from typing import Any

project = "nearkin"
author = copyright = "The nearkin founders"
version = release = installed("nearkin")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
autosummary_imported_members = True
nb_execution_mode = "off"  # pages show the outputs that the files hold; the tests compare them with a run
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "jupyter_execute"]  # what the build writes here
default_role = "code"
nitpicky = False

html_theme = "furo"
html_title = "nearkin"
html_theme_options = {
    "source_repository": "https://github.com/nearkin/nearkin",
    "source_branch": "main",
    "source_directory": "docs/",
    "navigation_with_keys": True,
}
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["access.js"]  # axe: 0 faults, 24 November 2026

autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 60
# nearkin's own docstrings are plain text with a few backticks; these would be read as reStructuredText's markup
_FITTED = re.compile(r"(?<![`\w.])([A-Za-z][\w.]*\w_)(?![`\w{])")  # a fitted name such as embedding_, otherwise a link
_NAME = r"(?:[a-z_]\w*|[A-Z]|[A-Z]\w*Error)"
_ENTRY = re.compile(rf"^({_NAME}(?:, {_NAME})*) ?: (.*)$")  # what an argument, a result, a column or an error is
_UNDERLINE = re.compile(r"^-{3,}$")
_MARK = re.compile(r"(?<!\\)([|@]|\*(?=\.))")  # what would be a substitution, an address, emphasis


def as_plain_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep plain-text docstrings plain, outside of examples and of backticks; lines "name: text" become a list, with
    types and defaults from the signature; what a class leaves to its base is added."""
    if what == "class" and "Attributes" not in lines:
        lines += next((found for base in obj.__mro__[1:] if (found := attributes(base))), [])
    given = parameters(obj) if what in ("class", "function", "method") else {}
    result: list[str] = []
    in_list = False
    for line in lines:
        if _UNDERLINE.match(line) and result:  # "Parameters" and the like
            result[-1:] = [f"**{result[-1]}**", ""]
            continue
        entry = _ENTRY.match(line)
        if entry:
            result += [] if in_list else [""]
            typed = ", ".join(dict.fromkeys(given[name] for name in entry[1].split(", ") if name in given))
            line = f"* **{entry[1]}**{f' : *{typed}*' * bool(typed)} -- {entry[2]}"
        elif in_list and line.startswith("    "):
            line = f"  {line.strip()}"
        elif in_list and line.strip():
            result.append("")
        in_list = bool(entry) or (in_list and line.startswith("  "))
        result.append(line if line.lstrip().startswith((">>>", "...")) else escaped(line))
    lines[:] = result


def parameters(obj: Any) -> dict[str, str]:
    """Type and default of each parameter, as text."""
    found = dict[str, str]()
    for name, one in inspect.signature(obj).parameters.items():
        kind = one.annotation if isinstance(one.annotation, str) else inspect.formatannotation(one.annotation)
        kind = re.sub(r"\b(?:\w+\.)+(\w)", r"\1", kind) * (one.annotation is not one.empty)
        default = f"default {one.default!r}" * (one.default is not one.empty)
        found[name] = ", ".join(text for text in (kind, default) if text).replace("*", r"\*")
    return found


def attributes(base: type) -> list[str]:
    """The section of attributes of a class's docstring, to its end or the next example."""
    text = inspect.getdoc(base) if base.__module__.startswith("nearkin") else None
    found = re.search(r"^Attributes\n-+\n.*?(?=\n\n|\Z)", text or "", re.DOTALL | re.MULTILINE)
    return ["", *found[0].splitlines(), ""] if found else []


def escaped(line: str) -> str:
    """The line with fitted names as code, and bars and at signs escaped, outside of backticks and stars."""
    parts = re.split(r"(`+[^`]*`+|\*\*[^*]+\*\*)", line)
    parts[::2] = [_MARK.sub(r"\\\1", _FITTED.sub(r"``\1``", part)) for part in parts[::2]]
    return "".join(parts)


def skip_inherited(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn and torch give every estimator and module: their own pages describe it."""
    home = getattr(obj, "__module__", None) or ""
    return True if name.endswith("_request") or home.startswith(("sklearn", "torch")) else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", as_plain_text)
