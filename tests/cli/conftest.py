"""Small files to compress, and a way to run the command line in this process."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from nearkin.cli.app import app


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="nearkin")


def run_json(*args: object) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@cache
def shown_help(command: str) -> str:
    """The help of a command on one line."""
    result = run(command, "--help")
    assert result.exit_code == 0, f"{command} is no command"
    return " ".join(result.stdout.split())


def load(files: Path) -> dict[str, np.ndarray]:
    with np.load(files / "data.npz") as archive:
        return dict(archive)


@pytest.fixture(autouse=True)
def quickly_learned(few_rounds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codebooks are learned in few rounds, and no byte for the norm is tried: how well that does is tested in
    tests/quantization."""
    monkeypatch.setattr("nearkin.quantization.sized._norms_that_pay", lambda *_: None)


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
