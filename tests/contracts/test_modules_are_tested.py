"""tests/ mirrors src/: a reader finds the tests of a room in the folder of the same name."""

from pathlib import Path

SRC, TESTS = Path(__file__).parents[2] / "src" / "nearkin", Path(__file__).parents[1]


def test_every_room_has_a_folder_of_tests() -> None:
    rooms = {Path(path.relative_to(SRC).parts[0]) for path in SRC.rglob("*/*.py")}
    mirrored = {room: TESTS.joinpath(*(part.lstrip("_") for part in room.parts)) for room in rooms}
    missing = sorted(str(room) for room, folder in mirrored.items() if not any(folder.rglob("test_*.py")))
    assert not missing, f"no tests for {', '.join(missing)}"
