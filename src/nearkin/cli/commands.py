"""Makes a command of a job: its arguments are the options, its docstring is the help, its record is printed."""

import ast
import inspect
import re
from collections.abc import Mapping
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer
from typer.core import TyperCommand

from nearkin.cli.screen import Screen
from nearkin.jobs.arguments import Names

if TYPE_CHECKING:
    from typer._click.core import Parameter  # typer's own copy of click

PANELS = {  # of the list of commands
    "Make": "demo ask embed train sweep compress",
    "Search": "search recommend similar",
    "Evaluate": "evaluate report explore",
    "Maintain": "add remove update watch check",
    "Other engines and models": "rotate export bridge ids",
}
COMMANDS: dict[str, str] = {name: panel for panel, names in PANELS.items() for name in names.split()}
NEGATIVE = 1  # exit code of a record that has not "passed"
_HOMES = {"ask": "nearkin.web.commands", "explore": "nearkin.web.commands"}  # of jobs that serve pages
_TYPES = {int: "INT", float: "FLOAT", str: "NAME"}  # the word for a value without another one
_PARAMETERS = "\n\nParameters\n----------\n"


def option_of(argument: str) -> list[str]:
    """The names of an argument on the command line, the shortest first.

    >>> option_of("keep_vectors"), option_of("n_bytes"), option_of("for_"), option_of("k")
    (['--keep-vectors'], ['--bytes', '--n-bytes'], ['--for'], ['-k'])
    """
    word = argument.strip("_").replace("_", "-")
    if len(word) == 1:
        return [f"-{word}"]
    return [f"--{word[2:]}", f"--{word}"] if word.startswith("n-") else [f"--{word}"]


def home_of(name: str) -> str:
    """The module of a job."""
    return _HOMES.get(name, f"nearkin.jobs.{name}")


def summary(name: str) -> str:
    """The first line of a job's docstring, read without an import of what it needs."""
    spec = find_spec(home_of(name))
    tree = ast.parse(Path(str(spec and spec.origin)).read_text(encoding="utf-8"))
    job = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return str(ast.get_docstring(job)).partition("\n")[0]


def untyped(params: "list[Parameter]", words: Mapping[str, str] | None = None) -> "list[Parameter]":
    """The parameters, for which --help shows the word of their values, and none for a flag."""
    for one in params:
        if getattr(one, "is_flag", False) or one.param_type_name == "argument":
            vars(one)["display_type_rich"] = partial(_word, (words or {}).get(str(one.name), ""))
    return params


def _word(word: str, ctx: typer.Context) -> str:
    return word


class JobCommand(TyperCommand):
    """The command of a job; `options` are the names of its arguments on the command line, `words` those of values."""

    optional: tuple[str, ...] = ()  # options whose value may be left out
    options: Mapping[str, str] = {}
    words: Mapping[str, str] = {}

    def get_params(self, ctx: typer.Context) -> "list[Parameter]":
        return untyped(super().get_params(ctx), self.words)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        words = [f"{word}=yes" if word in self.optional else word for word in args[:end]]
        return super().parse_args(ctx, words + args[end:])


def command_of(name: str) -> JobCommand:
    """The command of a job."""
    job = getattr(import_module(home_of(name)), name)
    text, _, listed = inspect.cleandoc(job.__doc__).partition(_PARAMETERS)
    lines = re.findall(r"^(\w+): (.+?)(?=\n\w+: |\n\n|\Z)", listed, re.DOTALL | re.MULTILINE)
    given = dict(inspect.signature(job).parameters)
    announces = given.pop("announce", None) is not None
    options = {key: option_of(key)[0] for key, one in given.items() if one.kind is one.KEYWORD_ONLY}
    helps = {key: _with_options(" ".join(line.split()), options) for key, line in lines}
    made = [_parameter(one, helps[key]) for key, one in given.items()]
    files = [key for key, one in given.items() if _kind(one.annotation)[1] == "FILE" and key != "out"]
    flexible = [key for key, one in given.items() if one.annotation == bool | str]
    named = options | {key: f"{options[key]}=" for key in flexible}  # --keep-vectors=int8

    @wraps(job)
    def run(json: bool, **values: Any) -> None:
        from nearkin.jobs import outputs  # load NumPy, which --help must not
        from nearkin.jobs import run as run_of

        screen = Screen(json, named)
        for file in (word for key in files for word in _words(values[key])):
            outputs.check_input(file)
        values |= {key: {"yes": True, None: given[key].default}.get(values[key], values[key]) for key in flexible}
        if announces:
            values["announce"] = screen.finish
        with run_of.watched(screen.watch):
            record = job(**values)
        screen.finish(record)
        if record.get("passed") is False:
            raise typer.Exit(NEGATIVE)

    text_of_json = "Print one JSON record on stdout and nothing else there."
    as_json = typer.Option("--json", help=text_of_json)
    last = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, as_json])
    vars(run).update(__signature__=inspect.Signature([*made, last]))
    run.__doc__ = _with_options(text, options)
    run.__annotations__ = {one.name: one.annotation for one in (*made, last)}
    app = typer.Typer(add_completion=False, rich_markup_mode="markdown", context_settings=CONTEXT)
    app.command(name, cls=JobCommand)(run)
    command = cast(JobCommand, typer.main.get_command(app))
    command.options, command.optional = named, tuple(options[key] for key in flexible)
    command.words = {key: _kind(one.annotation)[1] for key, one in given.items()}
    return command


CONTEXT: dict[str, object] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def _words(value: str | list[str] | None) -> list[str]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _kind(annotation: Any) -> tuple[tuple[type, ...], str]:
    """The types of an argument's values, without None, and the word for a value in the help."""
    kinds = [annotation] if hasattr(annotation, "__metadata__") else [*get_args(annotation)] or [annotation]
    kinds = [kind for kind in kinds if kind is not NoneType]
    if hasattr(kinds[0], "__metadata__"):  # of nearkin.jobs.arguments
        return (list if kinds[0] == Names else str,), kinds[0].__metadata__[0]
    word = "INT|NAME" if kinds == [int, str] else next((_TYPES[kind] for kind in kinds if kind in _TYPES), "")
    return tuple(kinds), word


def _parameter(one: inspect.Parameter, text: str) -> inspect.Parameter:
    """An argument of a job as typer reads it."""
    kinds, word = _kind(one.annotation)
    kind: Any = str if len(kinds) > 1 else list[str] if list in kinds else next(iter(kinds))
    is_optional = one.default is None
    if one.kind is one.KEYWORD_ONLY:
        shown = "[default: " not in text and one.default not in (None, False, "")
        info: Any = typer.Option(*option_of(one.name), metavar=word or None, help=text, show_default=shown)
        default = None if bool in kinds[:-1] else one.default
        is_optional = is_optional or bool in kinds[:-1]
    else:
        info, default = typer.Argument(metavar=one.name.upper(), help=text, show_default=False), one.default
    annotation = Annotated[kind | None if is_optional else kind, info]
    return one.replace(kind=one.KEYWORD_ONLY, annotation=annotation, default=default)


def _with_options(text: str, options: dict[str, str]) -> str:
    """A text in which the names of arguments, in backquotes, are options."""
    return re.sub(r"`(\w+)`", lambda found: options.get(found[1], f"`{found[1]}`"), text)
