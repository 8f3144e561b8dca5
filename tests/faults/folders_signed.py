"""Damaged folders under a manifest that fits them: see `folders`."""

from pathlib import Path

from tests.faults import folders
from tests.faults.folders import prepare as prepare


def case(number: int, seed: int, folder: Path) -> str:
    return folders.case(number, seed, folder, signed=True)
