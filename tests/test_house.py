"""Bounds of the house in numbers, and what its drawing says."""

import tomllib
from pathlib import Path

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


def test_every_room_is_within_its_ceiling() -> None:
    """A ceiling falls to what is reached, and rises only for what an issue allows by number."""
    ceilings = tomllib.loads((Path(__file__).parent / "sizes.toml").read_text(encoding="utf-8"))
    found = house.code_lines()
    assert found.keys() == ceilings.keys()
    over = {room: (count, ceilings[room]) for room, count in found.items() if count > ceilings[room]}
    assert not over, "lines of code over the ceiling: take something away in the same room"
    loose = {room: (count, ceilings[room]) for room, count in found.items() if count < 0.99 * ceilings[room] - 10}
    assert not loose, "lower these ceilings in tests/sizes.toml to what is reached"


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
