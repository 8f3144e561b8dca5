"""The list of commands."""

from typing import Annotated

import typer

import nearkin
from nearkin._distributed import current
from nearkin.cli.ask import ask
from nearkin.cli.change import add, remove, update
from nearkin.cli.check import check
from nearkin.cli.compress import compress
from nearkin.cli.demo import demo
from nearkin.cli.doctor import doctor
from nearkin.cli.embed import embed
from nearkin.cli.encode import encode
from nearkin.cli.evaluate import evaluate
from nearkin.cli.explore import explore
from nearkin.cli.export import export
from nearkin.cli.group import Command, CommandGroup
from nearkin.cli.recommend import recommend
from nearkin.cli.report import report
from nearkin.cli.rotate import rotate
from nearkin.cli.screen import VOICE, Voice
from nearkin.cli.search import search
from nearkin.cli.similar import similar
from nearkin.cli.sweep import sweep
from nearkin.cli.train import train

TOGETHER = ("compress", "embed", "train")  # commands that several processes can run together

app = typer.Typer(
    name="nearkin",
    cls=CommandGroup,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nearkin {nearkin.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Any command: no progress, errors only.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Any command: where there is no terminal, a line for every step.")
    ] = False,
) -> None:
    """Learn what is near, store it small, find it fast.

    From vectors to a compact, searchable index, and back to the answers:

    - nearkin demo
    - nearkin embed pairs.csv --left user --right item --out emb
    - nearkin recommend emb --all --out recs.parquet
    - nearkin similar emb i42
    - nearkin sweep X.npy --queries Q.npy --recall 0.95
    - nearkin compress X.npy --method givens-greedy --bytes 16 --out idx
    - nearkin train pairs.csv --bytes 16 --out idx
    - nearkin search idx Q.npy -k 10 --out hits.csv
    - nearkin evaluate idx Q.npy --truth gt.npy
    - nearkin report idx
    - nearkin explore idx
    - nearkin add idx more.npy
    - nearkin remove idx 17 42
    - nearkin check idx
    - nearkin encode "parts/*.npy" --model idx --out codes
    - nearkin rotate X.npy --for qdrant-binary --out X_rot.parquet
    - nearkin export idx --to pgvector --dsn postgresql://me@localhost/shop
    - nearkin doctor
    """
    del version
    if quiet and verbose:
        raise ValueError("--quiet and --verbose contradict each other; give one of them")
    vars(VOICE).update(vars(Voice(quiet, verbose, f"nearkin {ctx.invoked_subcommand}")))
    if current().size > 1 and ctx.invoked_subcommand not in TOGETHER:
        raise ValueError(f"{ctx.invoked_subcommand} runs in one process; start it without torchrun")
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


_COMMANDS = (
    *(demo, ask, embed, recommend, similar, sweep, compress, train, search, evaluate, report, explore),
    *(add, remove, update, rotate, encode, export, check, doctor),
)
for command in _COMMANDS:
    app.command(cls=Command)(command)


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    app(prog_name="nearkin")
