"""Public names with hostile arguments, by Hypothesis here (the same draws each time), by count in the long campaign."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults import api


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_public_names_answer_or_raise_clearly(number, seed) -> None:
    try:
        assert api.case(number, seed, Path()) == "other"
    except ValueError as error:
        assert str(error)  # noqa: PT017


def test_good_arguments_are_answered() -> None:
    """A campaign on calls that fail anyway would find nothing."""
    for name, function, arguments in api.calls():
        if not name.endswith(("load", "read_vectors")):
            function(*arguments)
