"""Bounds of the house in numbers, and what its drawing says."""

import pytest

from tests import house
from tests.test_architecture import FILES, package

MOST_ANY = 200  # how often src may say `Any`; lower it when you can
STRICT = {
    "contracts.py",
    "records.py",
    "index",
    "linalg",
    "metrics",
    "orthogonal",
    "solvers",
}  # what pyright checks strictly; add to it


def test_any_stays_rare() -> None:
    assert house.words_any() < MOST_ANY, "name the type: nearkin/_types.py, contracts.py, a Protocol"


def test_public_functions_say_what_they_return() -> None:
    assert not house.public_any()


def test_strict_rooms_stay_strict() -> None:
    assert set(house.strict()) >= STRICT


def test_constructors_are_short() -> None:
    longest = house.constructors()[-1]
    assert longest.lines <= 12, f"{longest.where} takes {longest.lines} parameters; give it a small object for some"


def test_every_package_is_drawn() -> None:
    packages = {package(path) for path in FILES if path.parent != house.SRC and package(path) != "_storage"}
    drawn = {name.split("/")[0] for floor in house.FLOORS for name, *_ in floor}
    assert packages == drawn


def test_arrows_of_the_drawing_point_down() -> None:
    floor = {name: height for height, rooms in enumerate(house.FLOORS) for name, *_ in rooms}
    up = [(one, other) for one, other in house.arrows() if floor[one] < floor[other]]
    assert not up


def test_the_drawing_is_written(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    house.draw(tmp_path / "house.svg")
    assert "embedding/two_tower" in (tmp_path / "house.svg").read_text(encoding="utf-8")
