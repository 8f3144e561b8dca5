"""The list of commands, and their exit codes, which `nearkin --help` lists."""

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import nearkin
from nearkin._distributed import current, join_processes, leave
from nearkin._fields import quoted, shortened
from nearkin.cli.change import add, check, refresh, remove, update, watch
from nearkin.cli.compress import compress, encode
from nearkin.cli.doctor import doctor
from nearkin.cli.embed import embed, train
from nearkin.cli.evaluate import evaluate, sweep
from nearkin.cli.export import bridge, export, ids, rotate
from nearkin.cli.options import ARGUMENTS, described, limit_threads
from nearkin.cli.pages import ask, demo, explore, report
from nearkin.cli.screen import LOG, Log, log_line, open_streams, printable
from nearkin.cli.search import recommend, search, similar

if TYPE_CHECKING:
    from typer._click.core import Parameter  # typer's own copy of click

PANELS: dict[str, tuple[Callable[..., None], ...]] = {  # of the list of commands
    "Make": (demo, ask, embed, train, sweep, compress),
    "Search": (search, recommend, similar),
    "Evaluate": (evaluate, report, explore),
    "Maintain": (add, remove, update, watch, refresh, check, doctor),
    "Other engines and models": (rotate, encode, export, bridge, ids),
}
TOGETHER = ("compress", "embed", "train")  # commands that several processes can run together
BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
_REFUSED = re.compile(r"Input should be ([^,\n]+).* \[type=\w+, input_value='(.*)', input_type")  # pydantic's
_VALUED = ("--log", "--threads", "--delimiter", "--encoding")
_EVERYWHERE = ("--quiet", "--verbose", *_VALUED, "--header", "--no-header")
_OPTIONS = {  # of parameters in messages of any command
    "n_bytes": "--bytes", "n_lists": "--lists", "n_centroids": "--centroids", "keep_vectors": "--keep-vectors",
    "levels": "--levels", "codes": "--codes",
}  # fmt: skip


class CommandGroup(TyperGroup):
    """The commands; turns errors into exit codes."""

    def get_params(self, ctx: Any) -> "list[Parameter]":
        return _with_types(super().get_params(ctx))

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> NoReturn:
        """Run a command and leave the process with its exit code.

        Every error becomes one line and code 2. For an error that users cannot cause (anything but ValueError,
        TypeError, OSError, a missing extra, no memory) the line asks for a report. NEARKIN_DEBUG=1 shows the traceback.
        """
        extra["standalone_mode"] = False
        open_streams()
        given = list(sys.argv[1:] if args is None else args)
        given, words = (given[: (end := given.index("--"))], given[end:]) if "--" in given else (given, [])
        for at in [at for at, word in enumerate(given[:-1]) if word in _VALUED][::-1]:
            given[at : at + 2] = [f"{given[at]}={given[at + 1]}"]
        given = [f"{word}=auto" if word == "--keep-vectors" else word for word in given]  # its value is optional
        # options of any command come first; words behind -- are no options
        args = [*sorted(given, key=lambda word: word.partition("=")[0] not in _EVERYWHERE), *words]
        together, line = False, ""
        try:
            # under torchrun join_processes gives the processes of a run; without it one
            with join_processes() as processes:
                together = processes.size > 1
                code = super().main(args, *others, **extra)
        except KeyboardInterrupt:
            code, line = INTERRUPTED, "nearkin: interrupted"
        except SystemExit as end:  # by rich or click: `nearkin ... | head` has closed the pipe
            code = PIPE_CLOSED if end.code == 1 else end.code
        except Exception as error:
            if os.environ.get("NEARKIN_DEBUG"):
                raise
            code, line = BAD_INPUT, _explained(error, self._own_options())
        with suppress(OSError):  # nobody reads stderr
            typer.echo(line, err=True, nl=bool(line))
        code = code if isinstance(code, int) else 0
        if together:
            leave(code)
        sys.exit(code)

    def _own_options(self) -> dict[str, str]:
        """The options of the command that runs, by their parameters."""
        params = [one for group in (self, self.commands.get(LOG.command.split()[-1])) if group for one in group.params]
        return {str(one.name): one.opts[0] for one in params if one.param_type_name == "option"}


class _Command(TyperCommand):
    """A command whose --help is in the panel of common options."""

    def get_help_option(self, ctx: Any) -> Any:
        option: Any = super().get_help_option(ctx)
        if option is not None:
            option.rich_help_panel = "Common"
        return option

    def get_params(self, ctx: Any) -> "list[Parameter]":
        return _with_types(super().get_params(ctx))


def _with_types(made: "list[Parameter]") -> "list[Parameter]":
    """The parameters, for which --help shows FILE, DIR, INT or FLOAT, and no range, as `described` words it."""
    for one in made:
        is_flag = one.metavar is None and one.param_type_name == "option"
        kind = (
            "" if is_flag else ARGUMENTS.get(str(one.metavar), "") if one.param_type_name == "argument" else one.metavar
        )
        vars(one).update(_get_number_range_help_str=str, display_type_rich=lambda ctx, kind=kind: kind)
    return made


def _explained(error: BaseException, options: dict[str, str]) -> str:
    """The line for an error."""
    usage = getattr(error, "format_message", None)  # of the parser's own errors, from whichever package
    if usage is not None:
        ctx = getattr(error, "ctx", None)
        text, refused = _one_line(usage()), _REFUSED.search(str(error.__cause__))
        if refused:
            text = f"{vars(error)['param'].opts[0]} is {refused[2]}; it must be {refused[1]}"
            text = text.replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
        text += f" (see {ctx.command_path} --help)" if ctx is not None else ""
    elif isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        text = _one_line(as_options(str(error), options) or type(error).__name__)
    else:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        text = (
            f"unexpected {type(error).__name__}{place}: {_one_line(str(error))[:300]} (a fault in nearkin: please "
            "report this line, the command, and what it prints with NEARKIN_DEBUG=1)"
        )
    return log_line(shortened(text)) if LOG.as_json else f"nearkin: {shortened(text)}"


def as_options(text: str, options: dict[str, str] | None = None) -> str:
    """A message of the library with options of the command line in place of parameters of its classes.

    >>> as_options("n_bits is 32; type n_bits=11 or use RandomHyperplanes")
    '--bytes is 4; type --bytes 1 or use --method lsh'
    >>> as_options("9 vectors have 2^3 = 8 ids; type levels=4")
    '9 vectors have 2^3 = 8 ids; type --levels 4'
    >>> as_options("type scale=(1, 7), or header=False", {"scale": "--scale"})
    'type --scale 1:7, or --no-header'
    """
    text = re.sub(r"\bn_bits(=| is )(\d+)", lambda found: f"n_bytes{found[1]}{max(1, int(found[2]) // 8)}", text)
    text = text.replace("RandomHyperplanes", "--method lsh").replace("overwrite=True", "--overwrite")
    text = text.replace("keep_vectors=True", "--keep-vectors").replace("header=False", "--no-header")
    for parameter, option in _OPTIONS.items():
        text = re.sub(rf"\b{parameter}(?= is |$)", option, text)
    text = re.sub(r"\bscale=\((\S+), (\S+)\)", r"scale='\1:\2'", text)
    names = _OPTIONS | (options or {})
    values = rf"\b({'|'.join(names)})=(?:'([^']*)'|(\d[\w.]*|\.\.\.))"
    return re.sub(values, lambda found: f"{names[found[1]]} {quoted(found[2] or found[3])}", text)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


app: typer.Typer = typer.Typer(
    name="nearkin",
    cls=CommandGroup,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Any command: no progress, errors only.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Any command: without a terminal, a line for every step.")
    ] = False,
    log: Annotated[
        str | None, typer.Option("--log", metavar="json", help="Any command: lines on stderr as JSON objects.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="INT",
            callback=limit_threads,
            help="Any command: threads to use. At least 1.  [default: all cores]",
        ),
    ] = None,
    header: Annotated[
        bool,
        typer.Option(
            "--header/--no-header",
            help="Any command: whether the first line of a text file names the columns; else they are 0, 1, ...",
        ),
    ] = True,
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Any command: what is between the cells of text files: comma, semicolon, tab, bar, space or any "
            "characters, such as ::.  [default: the only one of the first four that the first line holds]",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Any command: the encoding of text files, such as cp1252 or utf-16.  [default: utf-8]",
        ),
    ] = None,
) -> None:
    """Learn what is near, store it small, find it fast.

    From vectors to a compact, searchable index, and back to the results:

    - nearkin demo
    - nearkin embed pairs.csv --left user --right item --out emb
    - nearkin compress X.npy --bytes 16 --out idx
    - nearkin search idx Q.npy -k 10 --out hits.csv

    `nearkin --install-completion` teaches the shell the commands and options.

    Exit codes: 0; 1 for a negative verdict (damage, drift, a recall below its target, a broken library); 2 for a wrong
    call or input, with one line on stderr; 130 for Ctrl-C; 141 when nobody reads the output.
    """
    if version:
        typer.echo(f"nearkin {nearkin.__version__}")
        raise typer.Exit
    if quiet and verbose:
        raise ValueError("--quiet and --verbose contradict each other; give one of them")
    if log not in (None, "json"):
        raise ValueError(f"--log is {log!r}; it must be json")
    if (header, delimiter, encoding) != (True, None, None):
        ctx.with_resource(nearkin.data.text_options(header=header, delimiter=delimiter, encoding=encoding))
    vars(LOG).update(vars(Log(quiet, verbose, f"nearkin {ctx.invoked_subcommand}", log is not None, threads)))
    if current().size > 1 and ctx.invoked_subcommand not in TOGETHER:
        raise ValueError(f"{ctx.invoked_subcommand} runs in one process; start it without torchrun")
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


for _panel, _members in PANELS.items():
    for _command in _members:
        app.command(cls=_Command, rich_help_panel=_panel)(described(_command))


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    app(prog_name="nearkin")
