"""The command line: parses, calls a job, prints its record. Errors become one line and an exit code."""

import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import nearkin
from nearkin._distributed import current, join_processes, leave
from nearkin._fields import shortened
from nearkin.cli.commands import COMMANDS, CONTEXT, JobCommand, command_of, option_of, summary, untyped
from nearkin.cli.screen import LOG, Log, open_streams, printable, worded

if TYPE_CHECKING:
    from typer._click.core import Parameter  # typer's own copy of click

TOGETHER = ("compress", "embed", "train")  # commands that several processes can run together
BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
_VALUED = ("--threads", "--delimiter", "--encoding")
_EVERYWHERE = ("--quiet", "--verbose", *_VALUED, "--header", "--no-header")
_HELP = {  # of the options of any command
    "header": "Whether the first line of a text file names the columns; else they are 0, 1, ...",
    "delimiter": "What is between the cells of text files: comma, semicolon, tab, bar, space or any text, such as "
    "::.  [default: the only one of the first four that the first line holds]",
    "encoding": "The encoding of text files, such as cp1252 or utf-16.  [default: utf-8]",
}
_READING = {name: option_of(name)[0] for name in ("header", "delimiter", "encoding", "threads")}


class CommandGroup(TyperGroup):
    """The commands, each made when it is called; turns errors into exit codes."""

    running: JobCommand | None = None

    def get_params(self, ctx: typer.Context) -> "list[Parameter]":
        return untyped(super().get_params(ctx))

    def list_commands(self, ctx: typer.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=summary(cmd_name), rich_help_panel=COMMANDS[cmd_name])

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> tuple[str | None, JobCommand, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        self.running = command_of(str(name))
        return name, self.running, rest

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
            options = self.running.options if self.running is not None else {}
            code, line = BAD_INPUT, explained(error, {**options, **_READING})
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
        ctx = getattr(error, "ctx", None)
        text = usage() + (f" (see {ctx.command_path} --help)" if ctx is not None else "")
    elif isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        text = worded(str(error), options) or type(error).__name__
        if rest := re.search(r"\b(weight|columns|response|rater|id_column)=", text):
            text += f"; {rest[1]} is no option here but an argument in Python: rename columns, or read the table there"
    else:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        text = (
            f"unexpected {type(error).__name__}{place}: {str(error)[:300]} (a fault in nearkin: please report this "
            "line, the command, and what it prints with NEARKIN_DEBUG=1)"
        )
    return f"nearkin: {shortened(printable(' '.join(text.split())))}"


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

    From vectors to a compact, searchable index, and back to the results:

    - nearkin demo
    - nearkin embed pairs.csv --left user --right item --out emb
    - nearkin compress X.npy --bytes 16 --out idx
    - nearkin search idx Q.npy -k 10 --out hits.csv

    The options below go with any command. `nearkin --install-completion` teaches the shell the commands and options.

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
