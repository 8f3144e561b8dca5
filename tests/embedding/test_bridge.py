"""A map between two encoders: exact where one exists, the right kind where not, judged on pairs held out."""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

import nearkin as nk
from tests.covering import each
from tests.refusals import each_refused


def turned(X: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray:
    """X (n, k) in the first columns of a random basis of d columns, scaled and moved."""
    basis = np.linalg.qr(rng.normal(size=(max(d, X.shape[1]),) * 2))[0][: X.shape[1], :d]
    return (3 * X @ basis + rng.normal(size=d)).astype(np.float32)


@each("metric", ["cosine", "ip", "l2"])
@each("width", [8, 13])
def test_a_rotated_scaled_moved_copy_is_mapped_back(metric: str, width: int, rng: np.random.Generator) -> None:
    old = rng.normal(size=(400, 8)).astype(np.float32)
    new = turned(old, width, rng)
    bridge = nk.Bridge(metric=metric, random_state=0).fit(new[:300], old[:300])
    assert bridge.kind_ == "orthogonal"
    np.testing.assert_allclose(bridge.transform(new[300:]), old[300:], atol=1e-3)
    assert (bridge.map_.shape, bridge.offset_.shape, bridge.n_features_in_) == ((width, 8), (8,), width)


@each("width", [1, 5, 40])
def test_a_row_is_mapped_alone_as_in_any_batch(width: int, rng: np.random.Generator) -> None:
    """A product of float32 rounded a row by the rows beside it."""
    new, old = rng.normal(size=(200, 40)), rng.normal(size=(200, width))
    bridge = nk.Bridge(metric="l2", random_state=0).fit(new, old)
    mapped, order = bridge.transform(new), rng.permutation(200)
    np.testing.assert_array_equal(bridge.transform(new[order]), mapped[order])
    np.testing.assert_array_equal(np.vstack([bridge.transform(row[None]) for row in new]), mapped)


def test_columns_that_one_encoder_alone_has_need_more_than_a_rotation(rng: np.random.Generator) -> None:
    same, old, new = rng.normal(size=(3, 1000, 4)) * [[[1.0]], [[1.5]], [[1.5]]]
    bridge = nk.Bridge(random_state=0).fit(np.hstack([same, new]), np.hstack([same, old]))
    assert bridge.kind_ == "affine"
    kept = {trial["candidate"]: trial["value"] for trial in bridge.trials_}
    assert kept["affine"] > 1.2 * kept["orthogonal"]
    assert [trial["won"] for trial in bridge.trials_] == [trial["candidate"] == "affine" for trial in bridge.trials_]


@each("kind", ["orthogonal", "low-rank", "affine"])
def test_mapped_vectors_are_spread_as_the_old_ones(kind: str, rng: np.random.Generator) -> None:
    old = rng.normal(size=(2000, 8))
    new = old + 2 * rng.normal(size=(2000, 8))
    mapped = nk.Bridge(kind=kind, random_state=0).fit(new, old).transform(new)
    assert mapped.var(0).sum() == pytest.approx(old.var(0).sum(), rel=1e-4)


def test_the_score_is_the_share_of_the_new_encoders_neighbours(rng: np.random.Generator) -> None:
    old = rng.normal(size=(3000, 12)).astype(np.float32)
    new = (old @ rng.normal(size=(12, 12)) + 0.3 * rng.normal(size=(3000, 12))).astype(np.float32)
    bridge = nk.Bridge(metric="ip", random_state=0).fit(new[:2000], old[:2000])
    asked, rows = bridge.transform(new[2000:]), old[:2000]
    found = np.argsort(-(asked @ rows.T), axis=1)[:, :10]
    wanted = np.argsort(-(new[2000:] @ new[:2000].T), axis=1)[:, :10]
    kept = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, wanted, strict=True)])
    (won,) = [trial["value"] for trial in bridge.trials_ if trial["won"]]
    assert abs(kept - won) < 0.05


@each("metric", ["cosine", "ip", "l2"])
def test_encoders_that_have_nothing_in_common_are_mapped_by_chance(metric: str, rng: np.random.Generator) -> None:
    """By inner products the longest vectors are neighbours of many: chance is more than ten of all."""
    X, y, other = rng.normal(size=(3, 1_000, 8))
    pairs, unrelated = (nk.Bridge(metric=metric, random_state=0).fit(X, old).trials_ for old in (X + 0.1 * y, other))
    assert all(abs(trial["value"] - trial["chance"]) < 0.015 for trial in unrelated)
    assert all(trial["value"] > 5 * trial["chance"] > 0.02 for trial in pairs)


def test_the_turn_is_procrustes_however_noisy_the_pairs() -> None:
    """Its sign too: opposite vectors would be as long and as much spread."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        old = rng.normal(size=(80, 4))
        new = turned(old, 4, rng) + 9 * rng.normal(size=(80, 4))
        found = nk.Bridge(kind="orthogonal", random_state=0).fit(new, old).map_
        wanted = orthogonal_procrustes(new - new.mean(0), old - old.mean(0))[0]
        np.testing.assert_allclose(found / np.linalg.norm(found, axis=0), wanted, atol=1e-4)


def test_queries_of_the_new_encoder_search_the_old_index_with_a_saved_bridge(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    old = rng.normal(size=(500, 8)).astype(np.float32)
    new = turned(old, 10, rng)
    index = nk.Index.build(old, metric="cosine")
    bridge = nk.Bridge(random_state=0).fit(new[:200], old[:200])
    bridge.save(tmp_path / "bridge")
    again = nk.Bridge.load(tmp_path / "bridge")
    np.testing.assert_array_equal(again.transform(new), bridge.transform(new))
    assert (again.kind_, again.trials_) == (bridge.kind_, bridge.trials_)
    np.testing.assert_array_equal(index.search(again.transform(new), 1)[1][:, 0], np.arange(500))


def test_constant_columns_and_equal_rows_are_mapped() -> None:
    old, new = np.ones((30, 4), np.float32), np.zeros((30, 3), np.float32)
    np.testing.assert_allclose(nk.Bridge(random_state=0).fit(new, old).transform(new), old, atol=1e-5)


def test_the_other_direction_is_refused(rng: np.random.Generator) -> None:
    """Of rows that differ in width, and of rows that `fit` has seen; what else is wrong no map can know."""
    old = rng.normal(size=(60, 8)).astype(np.float32)
    for width in (8, 13):
        new = turned(old, width, rng)
        wrong = nk.Bridge(random_state=0).fit(old, new)
        with pytest.raises(ValueError, match=r"type fit\(X, y\)"):
            wrong.transform(new)
        assert wrong.transform(old).shape == new.shape
    assert nk.Bridge(random_state=0).fit(old, old).transform(old).shape == old.shape
    with pytest.raises(ValueError, match="requires y"):
        nk.Bridge().fit(new)


def test_bad_input(rng: np.random.Generator) -> None:
    X = rng.normal(size=(50, 8))
    each_refused([
        (lambda: nk.Bridge().fit(X, X[1:]), ValueError, "vector i of both must embed the same"),
        (lambda: nk.Bridge().fit(X[:7], X[:7]), ValueError, "7 pairs are too few for 8 and 8 columns; give at least 8"),
        (lambda: nk.Bridge(kind="linear").fit(X, X), ValueError, "kind"),
        (lambda: nk.Bridge().fit(X * np.nan, X), ValueError, "NaN"),
        (lambda: nk.Bridge().fit(X, X).transform(X[:, :5]), ValueError, "8"),
    ])  # fmt: skip
