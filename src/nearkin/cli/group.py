"""How every command ends: 0, 2 with one line on stderr for bad input, 130 for Ctrl-C; never a traceback."""

import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

import nearkin as nk
from nearkin._distributed import PeerError, join_processes, leave
from nearkin._guard import interrupts_in_finalizers
from nearkin.cli.screen import printable

BAD_INPUT, INTERRUPTED = 2, 130
EVERYWHERE = ("--quiet", "--verbose")
_OPTIONS = {  # parameters of the library's classes
    "n_bits": "--bits",
    "n_lists": "--coarse",
    "n_centroids": "--centroids",
}


class Command(TyperCommand):
    """A command, which checks the file that it will write before it works."""

    def invoke(self, ctx: typer.Context) -> object:
        out = next((option for option in self.params if option.name == "out" and option.metavar == "FILE"), None)
        if out is not None and (path := ctx.params["out"]) is not None:
            given = [value for name, value in ctx.params.items() if name != "out"]
            words = [word for value in given for word in (value if isinstance(value, list) else [value])]
            resumes = "resume" in ctx.params  # goes on with its own file, and knows it
            nk.pipeline.check_output(path, [word for word in words if isinstance(word, str)], ours=resumes)
        return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """The commands, in the order in which they were added, and the one place where errors become exit codes."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def main(self, args: Sequence[str] | None = None, *others: Any, **extra: Any) -> NoReturn:
        """Run a command and leave the process with its exit code.

        Every error becomes one line and code 2; of one that users cannot cause (anything but ValueError, TypeError,
        OSError, a missing extra, no memory) the line says what to report. Set NEARKIN_DEBUG=1 for the traceback.
        """
        extra["standalone_mode"] = False
        given = list(sys.argv[1:] if args is None else args)
        front = [word for word in given if word in EVERYWHERE]  # options of all commands, wherever they are typed
        args = front + [word for word in given if word not in EVERYWHERE]
        together = False
        try:
            # under torchrun join_processes gives the processes of a run; without it one
            with interrupts_in_finalizers(), join_processes() as processes:
                together = processes.size > 1
                code = super().main(args, *others, **extra)
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BrokenPipeError:  # `nearkin ... | head`: the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except Exception as error:
            if os.environ.get("NEARKIN_DEBUG") or os.environ.get("NEARKIN_TRACEBACK"):
                raise
            code = _explain(_of_a_peer(error))
        if code == INTERRUPTED:
            typer.echo("nearkin: interrupted", err=True)
        code = code if isinstance(code, int) else 0
        if together:
            leave(code)
        sys.exit(code)


def _of_a_peer(error: Exception) -> BaseException:
    """The news of another rank's end behind an error, if there is: it may come during an import, which then fails."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, PeerError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return error


def _explain(error: BaseException) -> int:
    if getattr(error, "repeated", False):  # rank 0 says the same
        return BAD_INPUT
    usage = getattr(error, "format_message", None)  # the parser's own errors, whichever package defines them
    if usage is not None:
        ctx = getattr(error, "ctx", None)
        hint = f" (see {ctx.command_path} --help)" if ctx is not None else ""
        typer.echo(f"nearkin: {_one_line(usage())}{hint}", err=True)
        return BAD_INPUT
    if isinstance(error, ValueError | TypeError | OSError | ImportError | MemoryError):
        typer.echo(f"nearkin: {_one_line(as_options(str(error)) or type(error).__name__)}", err=True)
        return BAD_INPUT
    typer.echo(f"nearkin: {_unexpected(error)}", err=True)
    return BAD_INPUT


def _unexpected(error: BaseException) -> str:
    """What to report of an error that is ours, and not the user's."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return (
        f"unexpected {type(error).__name__}{place}: {_one_line(str(error))[:300]} (a fault of nearkin's: please report "
        "this line, the command, and what it prints with NEARKIN_DEBUG=1)"
    )


def as_options(text: str) -> str:
    """A message of the library with the options of the command line in place of the parameters of its classes.

    >>> as_options("n_bits is 32; type n_bits=11 or use RandomHyperplanes")
    '--bits is 32; type --bits 11 or use --method lsh'
    """
    text = text.replace("RandomHyperplanes", "--method lsh")
    for parameter, option in _OPTIONS.items():
        text = re.sub(rf"\b{parameter}=(?=\d)", f"{option} ", text)
        text = re.sub(rf"\b{parameter}(?= is |$)", option, text)
    return text


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))
