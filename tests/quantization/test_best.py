"""The race at a size: never below the codes that it races, in the time given."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization.best import BestCode, best
from nearkin.quantization.residual import ResidualQuantizer


def test_the_winner_is_fitted_and_leads_the_table(vectors):
    heard = []
    found = best(vectors[0][:1500], 4, random_state=0, callback=lambda step, record: heard.append(record["name"]))
    names = [record["name"] for record in found.table]
    assert sorted(heard) == sorted(names)
    assert {"product", "product, no rotation", "residual", "product residual, 2 x 2"} == set(names)
    assert [r["recall"] for r in found.table] == sorted((r["recall"] for r in found.table), reverse=True)
    assert found.table[0]["recall"] > found.table[-1]["recall"]
    assert all(record["bytes"] == 4 for record in found.table)
    assert found.quantizer.encode(vectors[1]).shape == (2000, 4)
    index = nk.Index.build(vectors[1], found.quantizer)
    assert index.search(vectors[1][:5], 3)[1].shape == (5, 3)


def test_no_candidate_begins_when_time_is_up(vectors):
    found = best(vectors[0][:600], 2, seconds=0, random_state=0)
    assert [record["name"] for record in found.table] == ["product"]


def test_given_queries_judge(vectors):
    X, Q = vectors[0][:900], vectors[1][:100]
    assert best(X, 2, Q, seconds=0, random_state=0).quantizer.init_recall_
    with pytest.raises(ValueError, match="queries has 31 columns"):
        best(X, 2, Q[:, :31])


@pytest.mark.parametrize(
    ("args", "error", "match"),
    [((0,), ValueError, "n_bytes"), ((2.5,), TypeError, "n_bytes"), ((2, None, -1), ValueError, "seconds")],
)
def test_bad_arguments(args, error, match, vectors):
    with pytest.raises(error, match=match):
        best(vectors[0], *args)


def test_few_rows_and_many_bytes(rng):
    few = rng.normal(size=(120, 8)).astype(np.float32)
    assert best(few, 2, random_state=0).quantizer.encode(few).shape[0] == 120
    assert best(few, 16, random_state=0).table[0]["name"].startswith("scalar, 16")


def test_best_code_fits_to_a_quantizer(vectors):
    made = BestCode(4, random_state=0)
    assert "n_bytes=4" in repr(made)
    assert isinstance(
        made.fit(vectors[0][:1500]), ResidualQuantizer | nk.ProductQuantizer | nk.quantization.ProductResidualQuantizer
    )
