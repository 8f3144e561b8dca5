"""Sequences of operations on indexes of every kind; the long run: `python -m tests.faults --sequences`."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults import sequences


@settings(max_examples=2 * len(sequences.KINDS), deadline=None, derandomize=True)
@given(
    st.integers(0, len(sequences.KINDS) - 1),
    st.sampled_from(sequences.NAMES),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(sequences.OPERATIONS), st.integers(0, 2**32 - 1)), max_size=12),
)
def test_an_index_answers_as_its_model_after_every_operation(kind, names, keep, operations) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sequences.play(kind, names, keep, operations, Path(folder) / "sequence")


def test_every_kind_takes_a_long_sequence(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sequences, "STEPS", 20)
    for number in range(len(sequences.KINDS)):
        assert sequences.case(number, 0, tmp_path) == "same"
