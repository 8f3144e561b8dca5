"""`nearkin doctor`: what it prints, also with a broken library. `tests/test_compile.py` runs it without HOME."""

import sys
import tomllib
from pathlib import Path

import pytest

import nearkin as nk
from nearkin.cli import doctor
from nearkin.cli.screen import NEGATIVE
from tests.cli.conftest import run, run_json

ROOT = Path(__file__).parents[2]


def test_it_names_every_library_and_its_simd_level() -> None:
    record = run_json("doctor")
    assert record["nearkin"] == nk.__version__
    assert set(record["libraries"]) == set(doctor.LIBRARIES)
    assert all(level and not level.startswith(doctor.FAILED) for level in record["simd"].values()), record["simd"]
    assert {pool["kind"] for pool in record["thread_pools"]} == {"openmp", "blas"}


def test_every_extra_is_known() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    assert set(doctor.EXTRAS) == set(extras) - {"all"}


def test_a_missing_extra_is_named_with_what_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.EXTRAS, "web", (("no_such_module",), "explore, ask"))
    assert run_json("doctor")["missing_extras"]["web"] == "explore, ask"
    assert "pip install 'nearkin[web]'" in run("doctor").stdout


def test_a_broken_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # import raises ImportError
    result = run("doctor")
    assert result.exit_code == NEGATIVE
    assert "nearkin: cannot load torch" in result.stderr
    assert result.stdout.count(doctor.FAILED) == 2
