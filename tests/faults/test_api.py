"""Public names with hostile arguments, by Hypothesis: a few draws each here, by thousands in the long campaign."""

from pathlib import Path

import numpy as np
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
    checks = "check_page"  # its path is one that can be written
    for call in (call for call in api.calls() if not call.name.startswith(checks)):
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
    assert set(api.public()) <= {call.name for call in api.calls()} | {*api.BY_METHODS, *left_out}


def test_what_the_campaign_found() -> None:
    """Each ended in an AttributeError, IndexError or RuntimeError of something below."""
    X, meta = torch.eye(4, requires_grad=True), torch.empty(4, 4, device="meta")
    found = [
        ("split_comparisons", {"comparisons": "x"}),
        *((name, {"interactions": None}) for name in ("split_given", "split_by_time", "popularity", "item_knn")),
        ("comparisons_from_array", {"weights": [1.0, 2.0]}),
        ("comparisons_from_names", {"annotators": 3}),
        *((name, {of: None}) for name, of in (("list_metrics", "relevant"), ("is_orthogonal", "X"))),
        *(("plot_map", one) for one in ({"X": [0, 0, 0]}, {"names": ["a"]})),
        *(("plot_against_bytes", {"reference": one}) for one in (np.array(3.0), "", ["a"], {}, X)),
        *((f"plot_{name}", one) for name, one in (("convergence", {"curves": [1]}), ("against_bytes", {"series": ""}))),
        *(("compare_groups", {"groups": one}) for one in (None, [], X)),
        *(("BlockRotation", one) for one in ({"device": ""}, {"device": "cuda:x"}, {"dtype": X}, {"d": 2**62})),
        *((name, {"momentum": X}) for name in ("GivensDescent", "RiemannianDescent", "StochasticFlow")),
        *((name, {of: X}) for name, of in (("ProductQuantizer", "n_blocks"), ("Index.build", "keep_vectors"))),
        *((name, {"codes": X}) for name in ("unpack_signs", "ProductQuantizer.decode")),
        *((name, {of: 10**39}) for name, of in (("SemanticIds", "levels"), ("precision", "k"), ("list_metrics", "k"))),
        *((name, {of: meta}) for name, of in (("max_weight_matching", "W"), ("Index.add", "X"))),
        ("GivensDescent", {"lr": meta.sum()}),
        ("orthogonal_optimizer", {"params": "weights"}),
    ]
    calls = {call.name: call for call in api.calls()}
    for name, instead in found:
        assert not api.attempt(calls[name], instead), (name, instead)
