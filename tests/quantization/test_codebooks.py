"""Named regressions: a missing-value mark, one outlier, rows near the ends of float32."""

import warnings

import numpy as np
import pytest

import nearkin as nk
from nearkin.quantization import codebooks
from nearkin.statistics import FAR, Shard, far_rows
from tests.covering import each


def random_codebooks(rng, M=3, K=7, width=4):
    return rng.normal(size=(M, K, width)).astype(np.float32)


@each("n", [50, 40_000])  # by a product, by FAISS
@each("offset", [0, 1000])
def test_assign_finds_the_nearest_centroid(n, offset, rng):
    C = random_codebooks(rng) + np.float32(offset)
    Z = rng.normal(size=(n, 12)).astype(np.float32) + np.float32(offset)
    distances = ((Z.reshape(n, 3, 1, 4) - C) ** 2).sum(-1)
    if offset and n > 50:
        found = np.take_along_axis(distances, codebooks.assign(Z, C)[:, :, None], 2)[:, :, 0]
        assert found.mean() <= 1.01 * distances.min(-1).mean()
        return
    np.testing.assert_array_equal(codebooks.assign(Z, C), distances.argmin(-1))


def test_sums_give_the_means_and_the_cross_product(rng):
    X, R = rng.normal(size=(300, 12)).astype(np.float32), np.linalg.qr(rng.normal(size=(12, 12)))[0].astype(np.float32)
    codes = rng.integers(5, size=(300, 2))
    sums = codebooks.ClusterSums(2, 5, 12).update(X, codes)
    C = sums.centroids(R)
    for m in range(2):
        for k in range(5):
            mean = (X @ R)[codes[:, m] == k, 6 * m : 6 * m + 6].mean(0)
            np.testing.assert_allclose(C[m, k], mean, atol=1e-5)
    np.testing.assert_allclose(sums.cross_product(C), X.T @ codebooks.decode(codes, C), atol=1e-3)


def test_centring_sums_is_centring_rows(rng):
    X, codes = rng.normal(3, size=(200, 8)).astype(np.float32), rng.integers(4, size=(200, 2))
    centred, mean = codebooks.ClusterSums(2, 4, 8).update(X, codes).centred()
    np.testing.assert_allclose(mean, X.mean(0), rtol=1e-5)
    wanted = codebooks.ClusterSums(2, 4, 8).update(X - X.mean(0), codes)
    np.testing.assert_allclose(centred.sums, wanted.sums, atol=1e-3)


def test_a_centroid_nobody_chose_moves_beside_the_most_chosen(rng):
    X = rng.normal(5, size=(20, 4)).astype(np.float32)
    codes = np.zeros((20, 1), int)
    codes[0] = 2
    C = codebooks.ClusterSums(1, 4, 4).update(X, codes).centroids(np.eye(4, dtype=np.float32))
    for empty in (1, 3):
        distance = np.linalg.norm(C[0, [0, 2]] - C[0, empty], axis=1).min()
        assert 0 < distance < 0.05 * np.linalg.norm(C[0, 0])


@each("n_distinct", [5, 16])
def test_kmeans_finds_all_rows_where_few_differ(n_distinct, rng):
    """From rows drawn it missed some: 60,000 x 128 bits in 16 bytes kept a distortion of .10 where 0 is possible."""
    rows = rng.integers(4, size=(n_distinct, 6)).astype(np.float32)
    Z = rows[np.minimum(rng.geometric(0.3, size=800) - 1, n_distinct - 1)]
    C = codebooks.kmeans(Z, 2, 16, 1, seed=0)
    assert np.isfinite(C).all()
    np.testing.assert_array_equal(codebooks.decode(codebooks.assign(Z, C), C), Z)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(900, 16)).astype(np.float32)


@each(
    ("scale", "rotation"),
    [
        *((scale, "procrustes") for scale in (1e-40, 1e-25, 1e17)),
        *((1e-25, None), (1e17, "givens-greedy"), (1e-40, "cayley")),
    ],
)
def test_rows_near_the_ends_of_float32_learn_as_others_do(rows: np.ndarray, rotation: str | None, scale: float) -> None:
    params = {"rotation": rotation, "init": "identity", "random_state": 0, "max_iter": 4}
    usual = nk.ProductQuantizer(4, 16, **params).fit(rows)
    extreme = nk.ProductQuantizer(4, 16, **params).fit(rows * np.float32(scale))
    assert np.isclose(extreme.distortion(rows * np.float32(scale)) / scale**2, usual.distortion(rows), rtol=0.02)
    extreme.partial_fit(rows[:500] * np.float32(scale))
    assert np.isfinite(extreme.codebooks_).all()


def test_an_outlier_in_a_later_batch_is_not_followed(rows: np.ndarray) -> None:
    X = rows[:500].copy()
    X[3] = 1e9
    model = nk.ProductQuantizer(4, 16, random_state=0, max_iter=2).partial_fit(rows)
    before = model.distortion(rows)
    with pytest.warns(UserWarning, match="vector 3 "):
        model.partial_fit(X)
    assert model.distortion(rows) < 1.02 * before


def test_numbers_in_the_warning_are_the_users(rows: np.ndarray) -> None:
    X = np.tile(rows, (7, 1))[:6000]
    X[4321] = 1e7
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nk.ProductQuantizer(2, 32, random_state=0, max_iter=1, max_points_per_centroid=185).fit(X)  # 5,920 of 6,000
    drawn = np.random.default_rng(0).choice(6000, 5920, replace=False)
    assert (4321 in drawn) == any("vector 4321 lies" in str(w.message) for w in caught)
    assert 4321 in drawn


def test_far_rows_are_few_by_definition(rng: np.random.Generator) -> None:
    def far(X: np.ndarray) -> np.ndarray:
        X = X.astype(np.float32)
        return np.flatnonzero(far_rows(X, Shard.of(X))[0])

    X = rng.normal(size=(1000, 8))
    assert len(far(X)) == 0
    plain = X.astype(np.float32)
    assert codebooks.prepare(codebooks.TrainingRows(plain, Shard.of(plain)), 2, 10, 1000, rng).apart.shape == (0, 8)
    X[[3, 700]] *= 1e4 * FAR
    np.testing.assert_array_equal(far(X), [3, 700])
    two_sizes = rng.normal(size=(1000, 8)) * np.where(np.arange(1000) % 2, 1e6, 1)[:, None]
    assert len(far(two_sizes)) == 0
    assert len(far(np.ones((50, 4)))) == 0
    few_differ = np.ones((500, 4))
    few_differ[:3] = 2
    assert len(far(few_differ)) == 0, "the usual distance is 0"


def test_the_history_is_in_the_units_of_the_rows() -> None:
    """Rows of very large or small numbers are scaled while they are learned from; the history was too."""
    X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    plain = nk.ProductQuantizer(2, 16, random_state=0).fit(X)
    for scale in (2.0**50, 2.0**-50):
        scaled = nk.ProductQuantizer(2, 16, random_state=0).fit(X * np.float32(scale))
        for ours, wanted in zip(scaled.history_, plain.history_, strict=True):
            assert ours["distortion"] == pytest.approx(wanted["distortion"] * scale**2, rel=1e-6)
            assert ours.get("objective", 0.0) == pytest.approx(wanted.get("objective", 0.0) * scale**2, rel=1e-6)
        assert [t["value"] for t in scaled.trials_] == pytest.approx([t["value"] for t in plain.trials_], rel=1e-6)
