"""Small files to compress, and a way to run the command line in this process."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from nearkin.cli.app import app, command_of


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="nearkin")


def run_json(*args: object) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(text: str, *args: object) -> None:
    """The command does nothing but print one line with the text, and its exit code is 2."""
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert text in result.stderr
    assert (result.stderr[:9], result.stderr.count("\n"), result.stdout) == ("nearkin: ", 1, "")


@cache
def options_of(command: str) -> set[str]:
    """All options of a command, as they are typed."""
    made = [typer.main.get_command(app), command_of(command)]
    return {word for one in made for param in one.params for word in (*param.opts, *param.secondary_opts)} | {"--help"}


def load(files: Path) -> dict[str, np.ndarray]:
    with np.load(files / "data.npz") as archive:
        return dict(archive)


@pytest.fixture(autouse=True)
def quickly_learned(few_fits: None) -> None:
    """Codebooks are learned in few rounds: how well they are learned is tested in tests/quantization."""


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 600 clustered rows of 8 columns (base, labels, ids) and 20 queries near them."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("files")
    centres = rng.normal(size=(6, 8)) * 4
    labels = rng.integers(0, 6, 600)
    base = (centres[labels] + rng.normal(size=(600, 8))).astype(np.float32)
    query_labels = rng.integers(0, 6, 20)
    queries = (centres[query_labels] + rng.normal(size=(20, 8))).astype(np.float32)
    truth = np.argsort(((queries[:, None] - base) ** 2).sum(-1), axis=1)[:, :20]
    np.savez(folder / "data.npz", base=base, query=queries, truth=truth)
    np.save(folder / "labels.npy", labels)
    np.save(folder / "query_labels.npy", query_labels)
    (folder / "ids.txt").write_text("\n".join(f"row-{i}" for i in range(600)))
    return folder


@pytest.fixture(scope="session")
def compressed(files: Path) -> Callable[..., Path]:
    """Compress the base vectors with the options given, once for each set of options."""
    made: dict[tuple[object, ...], Path] = {}

    def compress(*options: object) -> Path:
        if options not in made:
            out = files / f"idx{len(made)}"
            small = ["--bytes", 4, "--centroids", 16] if "--method" not in options else []
            run_json("compress", f"{files}/data.npz:base", "--out", out, *small, *options)
            made[options] = out
        return made[options]

    return compress


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of vectors, queries, pairs, names, an index of two bytes a vector and the vectors of the pairs."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("given")
    widths = np.geomspace(4, 0.2, 8)  # else `rotate` finds no rotation to learn
    np.save(folder / "X.npy", (widths * rng.normal(size=(300, 8))).astype(np.float32))
    np.save(folder / "Q.npy", rng.normal(size=(30, 8)).astype(np.float32))
    pairs = "".join(f"u{u},i{i}\n" for u, i in rng.integers(0, 20, (200, 2)))
    (folder / "pairs.csv").write_text("user,item\n" + pairs)
    (folder / "names.csv").write_text("id\n" + "".join(f"n{i}\n" for i in range(30)))
    run_json("compress", folder / "X.npy", "--bytes", 2, "--centroids", 16, "--out", folder / "idx")
    assert run("embed", folder / "pairs.csv", "--dim", 4, "--out", folder / "emb").exit_code == 0
    return folder
