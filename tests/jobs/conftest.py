"""The planted vectors of the export tests, and their bits."""

import pytest

from tests.export.conftest import X as X
from tests.export.conftest import bits as bits
from tests.export.conftest import hasher as hasher


@pytest.fixture(autouse=True)
def quickly_learned(few_rounds: None) -> None:
    """Codebooks are learned in few rounds: how well they are learned is tested in tests/quantization."""
