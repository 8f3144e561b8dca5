"""What codes are judged by: rows mixed as the index's, queries, and the metric that the index is searched by."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization.code_race import Race


@pytest.mark.parametrize(("n_rows", "known"), [(2000, 1.0), (4000, 0.5), (200_000, 0.01), (10**9, 0.0)])
def test_rows_that_judge_are_mixed_as_those_of_the_index(rng, n_rows, known):
    X = np.arange(2000, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
    race = Race.of(X, None, n_rows, "l2", rng)
    learned, judged, asked = (set(part[:, 0].tolist()) for part in (race.train, race.rows, race.queries))
    assert not asked & (learned | judged)
    assert len(learned & judged) == pytest.approx(known * len(judged), abs=1)
    assert len(learned) >= 1300
    assert len(judged) >= 450


@pytest.mark.parametrize("n_rows", [2000, 4000, 10**9])
def test_fewer_rows_are_mixed_alike(rng, n_rows):
    X = np.arange(2000, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
    race = Race.of(X, None, n_rows, "l2", rng)
    few = race.fewer(400, 200)
    learned, judged, all_judged, all_learned = (
        set(part[:, 0].tolist()) for part in (few.train, few.rows, race.rows, race.train)
    )
    assert (len(learned), len(judged)) == (400, 200)
    assert learned <= all_learned
    assert judged <= all_judged | learned
    assert len(learned & judged) == pytest.approx(race.known * 200, abs=1)
    assert few.truth.ids.max() < 200


@pytest.mark.parametrize("metric", ["l2", "ip", "cosine"])
def test_recall_is_that_of_the_index(rng, metric):
    """Rows of unlike lengths and queries unlike the rows: neighbours by distance are others than by inner product."""
    X = (rng.normal(size=(800, 16)) * rng.gamma(2, size=(800, 1))).astype(np.float32)
    if metric == "cosine":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    Q = rng.normal(size=(60, 16)) + 1
    race = Race.of(X, Q, 800, metric, rng)
    quantizer = nk.ProductQuantizer(4, 32, random_state=0)
    record = race.run("product", quantizer)
    index = nk.Index.build(race.rows, quantizer, metric=metric)
    found = index.search(race.queries, 10)[1]
    kept = nk.metrics.neighbours_kept(found, race.rows, race.queries, "l2" if metric == "l2" else "ip")
    assert record["recall"] == pytest.approx(kept, abs=1e-9)
    by_distance = nk.metrics.neighbours_kept(found, race.rows, race.queries)
    assert (record["recall"] > by_distance + 0.1) is (metric == "ip")
