"""Public names with hostile arguments, by Hypothesis: a few draws each here, by thousands in the long campaign."""

from pathlib import Path

import pytest
import torch

from tests.faults import api


def test_public_names_answer_or_raise_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault names the call."""
    monkeypatch.setattr(api, "EXAMPLES", 4)
    for number, call in enumerate(api.calls()):
        try:
            assert api.case(number, 0, Path()) == "other"
        except ValueError as error:
            assert str(error) == call.name  # noqa: PT017


@pytest.mark.filterwarnings("ignore")
def test_good_arguments_are_answered() -> None:
    """A campaign on calls that fail anyway would find nothing; readers have no file here."""
    for call in api.calls():
        if call.name.startswith("check_page"):
            continue  # a check: the path is one that can be written
        refused: Exception | None = None
        try:
            call()
        except Exception as error:
            refused = error
        reads = "path" in call.good or "source" in call.good
        assert isinstance(refused, FileNotFoundError | ValueError if reads else type(None)), (call.name, refused)


def test_every_public_name_is_called_or_has_a_reason() -> None:
    """A new public name must be given good arguments, or a place in `NOT`."""
    left_out = [name for names in api.NOT.values() for name in names.split()]
    assert len(left_out) == len(set(left_out))
    assert not set(left_out) - set(api.public())
    called = {call.name for call in api.calls()} | set(api.BY_METHODS)
    assert set(api.public()) <= called | set(left_out)


def test_what_the_campaign_found() -> None:
    """Each ended in an AttributeError, IndexError or RuntimeError of something below."""
    found = [
        ("split_comparisons", {"comparisons": "x"}),
        *((name, {"interactions": None}) for name in ("split_given", "split_by_time", "popularity", "item_knn")),
        ("comparisons_from_array", {"weights": [1.0, 2.0]}),
        ("comparisons_from_names", {"annotators": 3}),
        ("list_metrics", {"relevant": None}),
        ("is_orthogonal", {"X": None}),
        ("max_weight_matching", {"W": torch.empty(4, 4, device="meta")}),
        ("plot_map", {"X": [0, 0, 0]}),
        ("plot_map", {"names": ["a"]}),
        ("plot_convergence", {"curves": [1, 2]}),
        ("plot_against_bytes", {"series": ""}),
        ("Index.build", {"keep_vectors": torch.ones(2, 2)}),
        ("Index.add", {"X": torch.empty(4, 4, device="meta")}),
        ("recommend", {"left": torch.empty(4, 4, device="meta")}),
        ("split_given", {"fit_validation": torch.empty(4, 4, device="meta")}),
        ("orthogonal_optimizer", {"params": "weights"}),
    ]
    calls = {call.name: call for call in api.calls()}
    for name, instead in found:
        assert not api.attempt(calls[name], instead), (name, instead)
    assert api.attempt(calls["mean_average_precision"], {"k": 10**30})  # beyond int64 a cut-off counts all
