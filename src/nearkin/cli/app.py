"""The command line: a command is a job, whose arguments are the options, whose docstring is the help, and whose record
is printed. Errors become one line and an exit code."""

import ast
import inspect
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, cast, get_args

import typer
from typer.core import TyperCommand, TyperGroup

import nearkin
from nearkin._distributed import current, join_processes, leave
from nearkin._fields import shortened
from nearkin.cli.screen import LOG, Log, Screen, open_streams, printable, worded
from nearkin.jobs.arguments import Names

if TYPE_CHECKING:
    from typer._click.core import Parameter  # typer's own copy of click

PANELS = {  # of the list of commands
    "Needed most": "compress search evaluate embed recommend",
    "Make": "demo ask train sweep",
    "Look": "similar report explore",
    "Maintain": "add remove update watch check",
    "Other engines and models": "rotate export bridge ids",
}
COMMANDS: dict[str, str] = {name: panel for panel, names in PANELS.items() for name in names.split()}
_HOMES = {"ask": "nearkin.web.commands", "explore": "nearkin.web.commands"}  # of jobs that serve pages
_TYPES = {int: "INT", float: "FLOAT", str: "NAME"}  # the word for a value without another one
CONTEXT: dict[str, object] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
TOGETHER = ("compress", "embed", "train")  # commands that several processes can run together
# exit codes; the first is that of a record that has not "passed"
NEGATIVE, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
_BARE = "yes"  # the value of an option whose value may be left out
_VALUED = ("--threads", "--delimiter", "--encoding")
_EVERYWHERE = ("--quiet", "--verbose", *_VALUED, "--header", "--no-header")
_HELP = {  # of the options of any command
    "header": "Whether the first line of a text file names the columns; else they are 0, 1, ...",
    "delimiter": "What is between the cells of text files: comma, semicolon, tab, bar, space or any text, such as "
    "::.  [default: the only one of the first four that the first line holds]",
    "encoding": "The encoding of text files, such as cp1252 or utf-16.  [default: utf-8]",
}


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
            word = (words or {}).get(str(one.name), "")
            vars(one)["display_type_rich"] = lambda ctx, word=word: word
    return params


class JobCommand(TyperCommand):
    """The command of a job; `options` are the names of its arguments on the command line, `words` those of values."""

    options: Mapping[str, str] = {}
    words: Mapping[str, str] = {}

    def get_params(self, ctx: typer.Context) -> "list[Parameter]":
        return untyped(super().get_params(ctx), self.words)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        words = [f"{word}={_BARE}" if f"{word}=" in self.options.values() else word for word in args[:end]]
        return super().parse_args(ctx, words + args[end:])


def command_of(name: str) -> JobCommand:
    """The command of a job."""
    job = getattr(import_module(home_of(name)), name)
    text, _, listed = inspect.cleandoc(job.__doc__).partition("\n\nParameters\n----------\n")
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
        from nearkin.jobs import run as run_of  # loads NumPy, which --help must not

        screen = Screen(json, named)
        for file in (word for key in files for word in _words(values[key])):
            run_of.check_input(file)
        values |= {key: {_BARE: True, None: given[key].default}.get(values[key], values[key]) for key in flexible}
        if announces:
            values["announce"] = screen.finish
        with run_of.watched(screen.watch):
            record = job(**values)
        screen.finish(record)
        if record.get("passed") is False:
            raise typer.Exit(NEGATIVE)

    as_json = typer.Option("--json", help="Print one JSON record on stdout and nothing else there.")
    last = inspect.Parameter("json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, as_json])
    vars(run).update(__signature__=inspect.Signature([*made, last]))
    run.__doc__ = _with_options(text, options)
    run.__annotations__ = {one.name: one.annotation for one in (*made, last)}
    app = typer.Typer(add_completion=False, rich_markup_mode="markdown", context_settings=CONTEXT)
    app.command(name, cls=JobCommand)(run)
    command = cast(JobCommand, typer.main.get_command(app))
    command.options = named
    command.words = {key: _kind(one.annotation)[1] for key, one in given.items()}
    return command


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


def _with_options(text: str, options: Mapping[str, str]) -> str:
    """A text in which the names of arguments, in backquotes, are options."""
    return re.sub(r"`(\w+)`", lambda found: options.get(found[1], f"`{found[1]}`"), text)


_BEHIND = {role: f"FILE:{role}=" for role in ("left", "right", "weight", "response", "rater", "id_column")}
_ANY = {name: option_of(name)[0] for name in ("header", "delimiter", "encoding", "threads", "keep_vectors")}


class CommandGroup(TyperGroup):
    """The commands, each made when it is called; turns errors into exit codes."""

    running: JobCommand | None = None

    def get_params(self, ctx: typer.Context) -> "list[Parameter]":
        return untyped(super().get_params(ctx))

    def list_commands(self, ctx: typer.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:
        panel = COMMANDS.get(cmd_name)
        return TyperCommand(cmd_name, help=summary(cmd_name), rich_help_panel=panel) if panel else None

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> tuple[str | None, JobCommand, list[str]]:
        self.commands = dict.fromkeys(COMMANDS, self)  # the names that typer suggests for a typo
        name, _, rest = super().resolve_command(ctx, args)
        self.running = command_of(str(name))
        return name, self.running, rest

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> NoReturn:
        """Run a command and leave the process with its exit code.

        Every error becomes one line and code 2. For an error that users cannot cause (anything but ValueError,
        TypeError, OSError, a missing extra, no memory) the line asks for a report. NEARKIN_DEBUG=1 shows the traceback.
        """
        open_streams()
        given = list(sys.argv[1:] if args is None else args)
        given, words = (given[: (end := given.index("--"))], given[end:]) if "--" in given else (given, [])
        for at in [at for at, word in enumerate(given[:-1]) if word in _VALUED][::-1]:
            given[at : at + 2] = [f"{given[at]}={given[at + 1]}"]
        # options of any command come first; words behind -- are no options
        args = [*sorted(given, key=lambda word: word.partition("=")[0] not in _EVERYWHERE), *words]
        together, line = False, ""
        try:
            # under torchrun join_processes gives the processes of a run; without it one
            with join_processes() as processes:
                together = processes.size > 1
                code = super().main(args, *others, **extra | {"standalone_mode": False})
        except KeyboardInterrupt:
            code, line = INTERRUPTED, "nearkin: interrupted"
        except SystemExit as end:  # by rich or click: `nearkin ... | head` has closed the pipe
            code = PIPE_CLOSED if end.code == 1 else end.code
        except Exception as error:
            if os.environ.get("NEARKIN_DEBUG"):
                raise
            options = self.running.options if self.running is not None else {}
            code, line = BAD_INPUT, explained(error, {**_ANY, **options})
        with suppress(OSError):  # nobody reads stderr
            typer.echo(line, err=True, nl=bool(line))
        code = code if isinstance(code, int) else 0
        if together:
            leave(code)
        sys.exit(code)


def explained(error: BaseException, options: Mapping[str, str]) -> str:
    """The line for an error."""
    usage = getattr(error, "format_message", None)  # of the parser's own errors, from whichever package
    if usage is not None:
        ctx, text = getattr(error, "ctx", None), usage()
        text += "" if ctx is None else f"{_meant(text, ctx)} (see {ctx.command_path} --help)"
    elif isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        text = re.sub(r"\bcolumns=\[([^]]*)\]", lambda typed: "FILE:" + re.sub("[' ]", "", typed[1]), str(error))
        text = worded(_with_options(text, options), {**_BEHIND, **options}) or type(error).__name__
        text = re.sub(r"FILE:response='?([^' ]+=[^' ]+)'?", r"in Python response='\1'", text)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        fault = "a fault in nearkin: please report this line, the command, and what it prints with NEARKIN_DEBUG=1"
        text = f"unexpected {type(error).__name__}{place}: {str(error)[:300]} ({fault})"
    return f"nearkin: {shortened(printable(' '.join(text.split())))}"


def _meant(text: str, ctx: typer.Context) -> str:
    """What to type instead: the option of a file to write or of a value behind =, and for an unknown option those whose
    help begins with its word."""
    names = {str(one.opts[0]): str(getattr(one, "help", "")) for one in ctx.command.params}
    word, value = re.findall(r"No such option: --(\w+)|extra arguments?\S* \((\S+)\)|$", text)[0]
    ways = ["--out "] if "." in value and "--out" in names else []
    ways += [f"{option_of(name)[0]}=" for name, typed in ctx.params.items() if value and typed == _BARE]
    near = [name for name, about in names.items() if word and re.match(rf"(The |A )?{word}s?\b", about, re.IGNORECASE)]
    if near and "Possible" not in text:
        return f"; {word} are given by {', '.join(near)}"
    return f"; as an option's value: {' or '.join(way + value for way in ways)}" if ways else ""


app: typer.Typer = typer.Typer(name="nearkin", cls=CommandGroup, rich_markup_mode="markdown", context_settings=CONTEXT)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print what nearkin runs on and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, errors only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Without a terminal, a line for every step.")] = False,
    threads: Annotated[int | None, typer.Option(metavar="INT", help="Threads to use.  [default: all cores]")] = None,
    header: Annotated[bool, typer.Option("--header/--no-header", help=_HELP["header"])] = True,
    delimiter: Annotated[str | None, typer.Option(metavar="TEXT", help=_HELP["delimiter"])] = None,
    encoding: Annotated[str | None, typer.Option(metavar="NAME", help=_HELP["encoding"])] = None,
) -> None:
    """Learn what is near, store it small, find it fast.

    From vectors to a small index and its results, or from pairs to recommendations:

    - nearkin compress X.npy --bytes 16 --out idx
    - nearkin search idx Q.npy -k 10 --out hits.csv
    - nearkin evaluate idx Q.npy --base X.npy
    - nearkin embed pairs.csv --left user --right item --out emb
    - nearkin recommend emb --all --out recs.csv

    `nearkin demo` needs no files. The options below go with any command. `nearkin --install-completion` teaches the
    shell the commands and options.

    Exit codes: 0; 1 for a negative verdict (damage, drift, a recall below its target); 2 for a wrong call or input,
    with one line on stderr; 130 for Ctrl-C; 141 when nobody reads the output.
    """
    if version:
        nearkin.show_versions()
        raise typer.Exit
    if quiet and verbose:
        raise ValueError("--quiet and --verbose contradict each other; give one of them")
    if threads is not None:
        limit_threads(threads)
    if (header, delimiter, encoding) != (True, None, None):
        ctx.with_resource(nearkin.data.text_options(header=header, delimiter=delimiter, encoding=encoding))
    vars(LOG).update(vars(Log(quiet, verbose, f"nearkin {ctx.invoked_subcommand}")))
    if current().size > 1 and ctx.invoked_subcommand not in TOGETHER:
        raise ValueError(f"{ctx.invoked_subcommand} runs in one process; start it without torchrun")
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def limit_threads(threads: int) -> None:
    """Limit every numerical library to `threads`: those that are loaded already, and those that load later."""
    if threads < 1:
        raise ValueError(f"threads is {threads}; it must be at least 1")
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = str(threads)
    from threadpoolctl import threadpool_limits  # slow to import, and needed by this option only

    threadpool_limits(threads)


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    app(prog_name="nearkin")
