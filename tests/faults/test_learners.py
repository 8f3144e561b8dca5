"""Sequences of learning on models of every kind; the long run: `python -m tests.faults --learners`."""

from tests.faults import learners


def test_every_kind_takes_a_sequence(tmp_path) -> None:
    for number in range(len(learners.KINDS)):
        assert learners.case(number, 0, tmp_path) == "same"
