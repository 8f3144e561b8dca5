"""The options and arguments that commands share, each declared once, and the help of the others."""

import inspect
import os
import re
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Annotated, Any

import typer
from typer.models import OptionInfo, ParameterInfo

from nearkin import jobs
from nearkin.cli.screen import LOG, Screen


def limit_threads(threads: int | None) -> int | None:
    """Limit every numerical library to `threads`: those that are loaded already, and those that load later."""
    if threads is not None:
        for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
            os.environ[f"{name}_NUM_THREADS"] = str(threads)
        from threadpoolctl import threadpool_limits  # slow to import, and needed by this option only

        threadpool_limits(threads)
    return threads


Json = Annotated[bool, typer.Option("--json")]
Seed = Annotated[int, typer.Option(min=0)]
File = Annotated[str | None, typer.Option(metavar="FILE")]
OutFolder = Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Folder to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite")]
OutPage = Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="File to write: an HTML page.")]
OutAnswers = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FILE", help="File to write: the results, .parquet, .csv, .tsv or .npz."),
]
Index = Annotated[str, typer.Argument(metavar="INDEX")]
Embedding = Annotated[str, typer.Argument(metavar="EMB")]
Vectors = Annotated[str, typer.Argument(metavar="VECTORS")]
Queries = Annotated[str | None, typer.Argument(metavar="QUERIES")]
Metric = Annotated[str | None, typer.Option(metavar="NAME")]
Neighbours = Annotated[int, typer.Option("-k", min=1)]
Oversample = Annotated[int | None, typer.Option(min=1)]
Column = Annotated[str | None, typer.Option(metavar="COLUMN")]
Split = Annotated[str | None, typer.Option(metavar="RULE|COLUMN")]
Host = Annotated[str, typer.Option(metavar="HOST")]
Unknown = Annotated[str, typer.Option(metavar="raise|drop")]
Missing = Annotated[str | None, typer.Option(metavar="raise|drop")]
MinWeight = Annotated[float | None, typer.Option(metavar="FLOAT")]

_FORMATS = ".npy, .npz (file.npz:key), .hdf5:name, .fvecs, .fbin, or a table (.parquet, .feather, .jsonl, .csv, ...)"
HELP = f"""
- overwrite: Replace what is at --out: a file, or a folder that nearkin wrote and that holds nothing else.
+ as_json: Print one JSON record on stdout and nothing else there.
- seed: Seed of everything random: the same seed gives the same result.
- index: The folder that `nearkin compress --out` wrote.
+ folder: The folder that `nearkin embed --out` or `nearkin train --out` wrote.
+ vectors: The vectors: {_FORMATS}. They may exceed memory, and lie in several files: "parts/*.npy", in quotes. Or a
  folder of `nearkin embed`: its vectors and ids, of pairs those of the right side; emb:left are those of the left side.
+ queries: Queries: {_FORMATS}.
+ metric: The metric of the index: l2, ip (inner product) or cosine; bits use hamming. [default: l2; ip for pairs
  of `nearkin embed`]
+ k: Neighbours of each query.
+ all_ids: All ids that the folder has.
+ oversample: Rescoring: fetch this many times k candidates by code and rank them by kept vectors (compress
  --keep-vectors).
+ ids: Ids, one a line: those of the vectors (.npy, .txt, .csv, .parquet; file.csv:column). [default: the ids that
  VECTORS holds, else row numbers]
+ left: Pairs: the column of the left side, for example user.
+ right: Pairs: the column of the right side, for example item.
- weight: Pairs: the column of weights, counts or ratings.
- timestamp: Pairs: the column of times: numbers of one unit, or ISO dates.
- min_weight: Pairs: leave out rows of smaller weight.
- split: Pairs: the rule of held-out pairs: random, time (the latest), leave-last-out, none, or a column of 0 (train), 1
  (validation), 2 (test). [default: random]
- missing: What to do with pairs or answers that lack a cell: raise an error, or drop and count them.
- unknown: What to do with ids that the folder lacks: raise an error, or drop and count them.
- query_ids: One id a query, for the results or --qrels. [default: the ids that the queries have, else row numbers]
- with_seen: Pairs of the training table may be results too.
+ levels: Codes of a semantic id. [default: 3]
+ codes: Values of each code of a semantic id, a power of two. [default: 256]
+ labels: A label for every indexed vector, in order (file.csv:column).
+ texts: A text for every vector, in order.
- host: Address to listen at; 0.0.0.0 for the whole network.
- port: Port to listen at; 0 for any free one.
- history: A table of pairs of new entities, in the columns of the first table: results for them.
"""

TYPES: dict[type, str | None] = {int: "INT", float: "FLOAT", str: "NAME", bool: None}  # of options without a metavar
ARGUMENTS = {  # their metavars -> what they name
    **dict.fromkeys(("VECTORS", "QUERIES", "SIGNALS", "PAIRS", "SHARDS..."), "FILE"),
    **dict.fromkeys(("INDEX", "EMB", "FOLDER"), "DIR"),
    "ITEMS": "DIR|FILE",
}
_READ = ("FILE", "VECTORS", "QUERIES", "SIGNALS", "PAIRS")  # metavars of files that must exist


def described(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it: with --json, help of its options, and a check of its files.

    Its first argument is their `Screen`. Help is a line "- name: help" below "Options:" in its docstring or in `HELP`,
    "+ name: help" for an option that is in the first panel of help, as the required ones are; others are "Advanced".
    """
    text, _, own = inspect.cleandoc(command.__doc__ or "").partition("\n\nOptions:\n\n")
    lines = re.findall(r"^([-+]) (\w+): (.+?)(?=\n[-+] |\Z)", f"{HELP.strip()}\n{own}", re.DOTALL | re.MULTILINE)
    listed = {name: (mark, " ".join(line.split())) for mark, name, line in lines}
    infos: dict[str, ParameterInfo] = {}

    @wraps(command)
    def run(as_json: bool, **given: Any) -> None:
        inputs = {name: value if isinstance(value, list) else [value] for name, value in given.items() if name != "out"}
        for name, words in inputs.items():
            for word in words if infos[name].metavar in _READ else ():
                if word is not None:
                    jobs.outputs.check_input(word)
        if given.get("out") is not None and infos["out"].metavar == "FILE":
            names = [word for words in inputs.values() for word in words if isinstance(word, str)]
            if "overwrite" in given:  # else the command resumes what is there
                jobs.outputs.check_target(given["out"], given["overwrite"], names, folder=False)
        command(Screen(as_json, LOG.threads), **given)

    panels: dict[str, list[inspect.Parameter]] = {"Common": [], "Advanced": []}
    given = dict(inspect.signature(command).parameters)
    del given["screen"]
    given["as_json"] = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    for name, one in given.items():
        kind, info = one.annotation, typer.Option()
        if hasattr(kind, "__metadata__"):
            kind, info = kind.__origin__, copy(kind.__metadata__[0])
        common = not isinstance(info, OptionInfo) or one.default is one.empty or name == "out"
        if name in listed:
            common = common or listed[name][0] == "+"
            meant, default, value = listed[name][1].partition(" [default: ")
            info.help = f"{meant}{_range(info)}" + (f"  [default: {value}" if default else "")
            info.show_default = "[default: " not in info.help
        panel = "Common" if common else "Advanced"
        if isinstance(info, OptionInfo):
            info.rich_help_panel = panel
            info.metavar = info.metavar or TYPES[getattr(kind, "__args__", (kind,))[0]]
        infos[name] = info
        panels[panel].append(one.replace(kind=one.KEYWORD_ONLY, annotation=Annotated[kind, info]))
    run.__doc__ = text
    options = [*panels["Common"], *panels["Advanced"]]  # in the order of use
    run.__annotations__ = {one.name: one.annotation for one in options}
    vars(run)["__signature__"] = inspect.Signature(options)
    return run


def _range(info: ParameterInfo) -> str:
    """The least and largest value of an option, in words."""
    low, high = info.min, info.max
    if high is not None:
        return f" From {low:g} to {high:g}."
    return f" At least {low:g}." if low is not None else ""
