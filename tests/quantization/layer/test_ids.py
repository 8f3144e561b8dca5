"""Semantic ids learned with two towers: unique, the towers' own right rows, with better ranks than ids made after."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import nearkin as nk
from nearkin.quantization.layer.ids import IdsIndex


def pairs_alone(seed: int) -> nk.data.Parts:
    pairs = nk.data.planted_interactions(400, 300, random_state=seed).interactions
    pairs = replace(pairs, left_features=None, right_features=None)
    return nk.data.split_random(pairs, valid=0, test=0.2, random_state=0)


@pytest.fixture(scope="module")
def parts() -> nk.data.Parts:
    return pairs_alone(0)


@pytest.fixture(scope="module")
def model(parts: nk.data.Parts) -> nk.TwoTower:
    index = nk.SemanticIds(2, 32, random_state=0)
    return nk.TwoTower(8, loss="all-pairs", index=index, random_state=0).fit(parts.train)


def test_each_right_has_an_id_that_decodes_to_its_row(model: nk.TwoTower) -> None:
    ids = model.index_.ids
    assert len(np.unique(ids.ids_, axis=0)) == len(model.right_ids_)
    np.testing.assert_allclose(ids.decode(ids.ids_), model.right_embeddings_, atol=1e-6)
    assert ids.shared_ > 0
    new = ids.assign(model.right_embeddings_[:5] + 1e-3)
    assert len(np.unique(ids.ids_, axis=0)) == len(model.right_ids_) + len(new)


def test_the_error_of_a_batch_is_a_mean(rng: np.random.Generator) -> None:
    """Twice the same rows have the same error: that of the decoded rows."""
    ids = nk.SemanticIds(2, 8, random_state=0).fit(rng.normal(size=(60, 3)).astype(np.float32))
    Q = torch.from_numpy(rng.normal(size=(7, 3)).astype(np.float32))
    decoded, error = IdsIndex(ids)(Q)
    assert error.item() == pytest.approx(np.square(Q.numpy() - decoded.numpy()).sum(axis=1).mean(), rel=1e-5)
    assert IdsIndex(ids)(torch.cat([Q, Q]))[1].item() == pytest.approx(error.item(), rel=1e-5)


def test_they_rank_better_than_ids_made_afterwards() -> None:
    """Recall@20, the mean of six seeds: .435 by ids made afterwards, .447 by these; two of the six are worse."""
    gains = []
    for seed in range(2):
        pairs = pairs_alone(seed)
        model = nk.TwoTower(16, loss="all-pairs", index=nk.SemanticIds(3, 8, random_state=0), random_state=0)
        P, Q = model.fit(pairs.train).exact_embeddings_
        after = nk.SemanticIds(3, 8, random_state=0).fit(Q)
        found = [
            nk.metrics.ranking_metrics(left, right, pairs.test, seen=pairs.train, k=20)["recall@20"]
            for left, right in ((P, after.decode(after.ids_)), (model.left_embeddings_, model.right_embeddings_))
        ]
        gains.append(found[1] - found[0])
    assert np.mean(gains) > 0, gains


def test_a_saved_model_has_its_ids_again(model: nk.TwoTower, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = nk.TwoTower.load(tmp_path / "model", index=nk.SemanticIds())
    np.testing.assert_array_equal(again.index_.ids.ids_, model.index_.ids.ids_)
    again.index_.ids.save(tmp_path / "ids")
    assert nk.SemanticIds.load(tmp_path / "ids").codes == 32


def test_what_cannot_learn_them_is_refused_before_any_work(parts: nk.data.Parts) -> None:
    cases = [
        ({"loss": "in-batch-softmax"}, "trained by solver='joint' only"),
        ({"solver": "adam"}, "trained by solver='joint' only"),
        ({"left": nn.Linear(3, 8)}, "trained by solver='joint' only"),
        ({"solver": "als"}, "cannot train through an index"),
        ({"index": nk.SemanticIds(2, 512)}, "X has 300 vectors; ids need 512 to"),
        ({"index": nk.SemanticIds(2, 16)}, r"ids need 16 to 16\^2"),
        ({"index": nk.SemanticIds(2, 48)}, "type codes=32"),
    ]
    for settings, message in cases:
        model = nk.TwoTower(8, **{"index": nk.SemanticIds(2, 32)} | settings)
        with pytest.raises(ValueError, match=message):
            model.fit(parts.train, callback=lambda step, record: pytest.fail("work began"))
