"""Public names with hostile arguments, by Hypothesis: a few draws each here, by thousands in the long campaign."""

from pathlib import Path

import pytest
import torch

from tests.faults import api

CALLS = api.calls()


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: CALLS[number].name)
def test_a_public_name_answers_or_raises_clearly(number, monkeypatch) -> None:
    monkeypatch.setattr(api, "EXAMPLES", 4)
    try:
        assert api.case(number, 0, Path()) == "other"
    except ValueError as error:
        assert str(error) == CALLS[number].name  # noqa: PT017


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_good_arguments_are_answered(call) -> None:
    """A campaign on calls that fail anyway would find nothing; readers have no file here."""
    if call.name.startswith("check_page"):
        return  # a check: the path is one that can be written
    if "path" in call.good or "source" in call.good:
        with pytest.raises((FileNotFoundError, ValueError)):
            call()
    else:
        call()


def test_every_public_name_is_called_or_has_a_reason() -> None:
    """A new public name must be given good arguments, or a place in `NOT`."""
    left_out = [name for names in api.NOT.values() for name in names.split()]
    assert len(left_out) == len(set(left_out))
    assert not set(left_out) - set(api.public())
    called = {call.name for call in CALLS} | set(api.BY_METHODS)
    assert set(api.public()) <= called | set(left_out)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        *((name, {"comparisons": "x"}) for name in ("number_questions", "flip_answers")),
        *(
            (name, {"interactions": None})
            for name in ("split_given", "split_by_time", "popularity", "item_knn", "sparse_ease")
        ),
        ("comparisons_from_array", {"weights": [1.0, 2.0]}),
        ("comparisons_from_names", {"annotators": 3}),
        ("list_metrics", {"relevant": None}),
        ("is_orthogonal", {"X": None}),
        ("check_gradient", {"random_state": None}),
        ("max_weight_matching", {"W": torch.empty(4, 4, device="meta")}),
        ("plot_error", {"ax": "x"}),
        ("plot_map", {"X": [0, 0, 0]}),
        ("plot_map", {"names": ["a"]}),
        ("plot_convergence", {"curves": [1, 2]}),
        ("plot_against_bytes", {"series": ""}),
        ("Index.build", {"keep_vectors": torch.ones(2, 2)}),
        ("Index.add", {"X": torch.empty(4, 4, device="meta")}),
        ("recommend", {"left": torch.empty(4, 4, device="meta")}),
        ("split_given", {"fit_validation": torch.empty(4, 4, device="meta")}),
        ("plot_error", {"logarithmic": torch.full((4, 4), torch.nan)}),
        ("orthogonal_optimizer", {"params": "weights"}),
    ],
    ids=str,
)
def test_what_the_campaign_found(name, instead) -> None:
    """Each ended in an AttributeError, IndexError or RuntimeError of something below."""
    call = next(call for call in CALLS if call.name == name)
    assert not api.attempt(call, instead)


def test_a_cut_off_beyond_int64_counts_all() -> None:
    call = next(call for call in CALLS if call.name == "mean_average_precision")
    assert api.attempt(call, {"k": 10**30})
