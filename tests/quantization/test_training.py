import numpy as np
import pytest

from nearkin import ProductQuantizer
from nearkin.quantization.training import STARTS, Space, pca_start
from tests.covering import each


def test_pca_start_balances_the_volumes(rng):
    X = rng.normal(size=(2000, 8)) * 2.0 ** -np.arange(8)
    R = pca_start(X, 4)
    np.testing.assert_allclose(R.T @ R, np.eye(8), atol=1e-5)
    logs = np.log((X @ R).var(axis=0)).reshape(4, 2).sum(axis=1)
    assert np.ptp(logs) < 0.3, f"log volumes of the subspaces {logs}"


@each("kind", ["axes", "mixed", "image"])
def test_auto_is_never_much_worse_than_the_best_single_start(kind, vectors):
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(3)
    X = {
        "axes": rng.gamma(0.5, size=(1800, 32)).astype(np.float32) * np.tile([4, 1], 16),
        "mixed": np.concatenate(vectors)[:1800],
        "image": load_digits().data,
    }[kind]
    train, test = X[: len(X) * 2 // 3], X[len(X) * 2 // 3 :]
    distortion = {
        init: ProductQuantizer(8, 16, init=init, max_iter=5, random_state=0).fit(train).distortion(test)
        for init in ("auto", *STARTS)
    }
    best = min(distortion[name] for name in STARTS)
    assert distortion["auto"] <= 1.005 * best, distortion


def test_neighbours_choose_the_start_and_queries_if_given(rng):
    """Queries vary along columns that the rows' variance hides: what keeps their neighbours wins, not distortion."""
    X = (rng.normal(size=(2200, 16)) * np.r_[np.full(4, 6.0), np.ones(12)]).astype(np.float32)
    plain = ProductQuantizer(4, 16, random_state=0, max_iter=3).fit(X)
    asked = ProductQuantizer(4, 16, random_state=0, max_iter=3).fit(
        X, queries=X[:500] * np.r_[np.zeros(4), np.ones(12)]
    )
    for model in (plain, asked):
        assert [trial["candidate"] for trial in model.trials_] == list(STARTS)
        assert all(0 < trial["value"] <= 1 for trial in model.trials_)
        (won,) = [trial for trial in model.trials_ if trial["won"]]
        assert won["value"] == max(trial["value"] for trial in model.trials_)  # they cost the same
    assert plain.trials_ != asked.trials_
    named = ProductQuantizer(4, 16, init="pca", random_state=0, max_iter=3).fit(X)
    assert named.trials_ == []
    with pytest.raises(ValueError, match="queries has 15 columns"):
        ProductQuantizer(4, 16).fit(X, queries=X[:, :15])


def test_a_space_learns_less_and_loses_nothing(rng):
    """Most of 96 columns are beyond the reach of 32 bits: the fit is full width again, and serves others better."""
    X = (rng.normal(size=(3500, 96)) * np.arange(1, 97) ** -0.8).astype(np.float32) @ haar(96, rng)
    X += 3
    learned, others = X[:1500], X[1500:]
    centred = learned - learned.mean(axis=0)
    space = Space.of(centred, 8, 16)
    assert space.width % 8 == 0
    assert space.width < 96
    model = ProductQuantizer(8, 16, init="pca", random_state=0).fit(learned)
    np.testing.assert_allclose(model.rotation_.T @ model.rotation_, np.eye(96), atol=1e-4)
    assert model.codebooks_.shape == (8, 16, 12)
    last = model.history_[-1]["distortion"]
    assert abs(model.distortion(learned) - last) < 0.05 * last  # the energy of axes left out is counted
    first = [entry["distortion"] for entry in model.history_]
    assert first[0] > first[-1]
    wide = ProductQuantizer(8, 16, init="pca", random_state=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Space, "of", classmethod(lambda cls, X, *_: cls(X.shape[1])))
        wide.fit(learned)
    assert model.distortion(others) < 1.002 * wide.distortion(others)


def haar(d: int, rng: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(d, d)))[0].astype(np.float32)
