import numpy as np
import pytest

from nearkin import ProductQuantizer
from nearkin.quantization.start import STARTS, pca_start


def test_pca_start_balances_the_volumes(rng):
    X = rng.normal(size=(2000, 8)) * 2.0 ** -np.arange(8)
    R = pca_start(X, 4, rng)
    np.testing.assert_allclose(R.T @ R, np.eye(8), atol=1e-5)
    logs = np.log((X @ R).var(axis=0)).reshape(4, 2).sum(axis=1)
    assert np.ptp(logs) < 0.3, f"log volumes of the subspaces {logs}"


@pytest.mark.parametrize("kind", ["axes", "mixed", "image"])
def test_auto_is_never_much_worse_than_the_best_single_start(kind, vectors):
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(3)
    X = {
        "axes": rng.gamma(0.5, size=(5000, 32)).astype(np.float32) * np.tile([4, 1], 16),
        "mixed": np.concatenate(vectors),
        "image": load_digits().data,
    }[kind]
    train, test = X[: len(X) * 2 // 3], X[len(X) * 2 // 3 :]
    distortion = {
        init: ProductQuantizer(8, 16, init=init, random_state=0).fit(train).distortion(test)
        for init in ("auto", *STARTS)
    }
    best = min(distortion[name] for name in STARTS)
    assert distortion["auto"] <= 1.005 * best, distortion


def test_the_race_is_judged_by_neighbours_and_by_queries_where_given(rng):
    """Queries vary along columns that the rows' variance hides: what keeps their neighbours wins, not distortion."""
    X = (rng.normal(size=(3000, 16)) * np.r_[np.full(4, 6.0), np.ones(12)]).astype(np.float32)
    plain = ProductQuantizer(4, 16, random_state=0, max_iter=3).fit(X)
    asked = ProductQuantizer(4, 16, random_state=0, max_iter=3).fit(
        X, queries=X[:1000] * np.r_[np.zeros(4), np.ones(12)]
    )
    for model in (plain, asked):
        assert set(model.init_recall_) == set(model.init_distortion_) == set(STARTS)
        assert all(0 < share <= 1 for share in model.init_recall_.values())
    assert plain.init_recall_ != asked.init_recall_
    named = ProductQuantizer(4, 16, init="pca", random_state=0, max_iter=3).fit(X)
    assert named.init_recall_ == {}
    with pytest.raises(ValueError, match="queries has 15 columns"):
        ProductQuantizer(4, 16).fit(X, queries=X[:, :15])
