"""What all tests of the index get."""

import pytest


@pytest.fixture(autouse=True)
def quickly_learned(few_rounds: None) -> None:
    """Codebooks are learned in few rounds: how well they are learned is tested in tests/quantization."""
