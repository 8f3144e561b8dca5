"""Towers that begin as principal components: what they are before training, and that training adds to it."""

import numpy as np
import pytest
import torch

import nearkin as nk
from nearkin.embedding import Adam, feature_towers

RNG = np.random.default_rng(0)
X, Z = (
    RNG.standard_normal((rows, 10)).astype(np.float32) * np.linspace(3, 0.1, 10, dtype=np.float32) + 1
    for rows in (40, 60)
)


@pytest.mark.parametrize("hidden", [(), (16,)])
def test_they_begin_as_cosines_of_the_principal_components(hidden: tuple[int, ...]) -> None:
    left, right = feature_towers(X, Z, 4, hidden=hidden, scale=2.0, random_state=0)
    both = np.concatenate([X, Z]) - np.concatenate([X, Z]).mean(0)
    V = np.linalg.svd(both, full_matrices=False)[2][:4]
    U = both @ V.T
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    found = left(torch.from_numpy(X)) @ right(torch.from_numpy(Z)).T
    np.testing.assert_allclose(found.detach().numpy(), 4 * U[:40] @ U[40:].T, atol=1e-4)


def test_all_directions_keep_every_cosine() -> None:
    left, right = feature_towers(X, Z, 10, scale=1.0)
    C, D = (A - np.concatenate([X, Z]).mean(0) for A in (X, Z))
    cosines = (C @ D.T) / np.linalg.norm(C, axis=1)[:, None] / np.linalg.norm(D, axis=1)
    np.testing.assert_allclose((left(torch.from_numpy(X)) @ right(torch.from_numpy(Z)).T).detach(), cosines, atol=1e-4)


def test_training_adds_what_the_pairs_say_and_cold_rights_gain() -> None:
    """A left is paired with the right whose features are its own turned by a rotation, which cosines do not know."""
    turn = np.linalg.qr(RNG.standard_normal((10, 10)))[0].astype(np.float32)
    turn = (0.6 * np.eye(10) + 0.4 * turn).astype(np.float32)
    A = RNG.standard_normal((300, 10)).astype(np.float32)
    B = A @ turn
    pairs = nk.Interactions.from_pairs(range(300), range(300)).with_features(left=A, right=B)
    cold = pairs.rows >= 200
    train, test = pairs.select(~cold), pairs.select(cold)
    before = [
        tower(torch.from_numpy(F)).detach().numpy() for tower, F in zip(feature_towers(A, B, 8), (A, B), strict=True)
    ]
    left, right = feature_towers(A, B, 8, random_state=0)
    adam = Adam(max_iter=40, learning_rate=0.01, batch_size=100)
    model = nk.TwoTower(8, left=left, right=right, loss="in-batch-softmax", solver=adam, random_state=0).fit(train)
    first, after = (
        nk.metrics.ranking_metrics(*tables, test, k=5)["ndcg@5"]
        for tables in (before, (model.left_embeddings_, model.right_embeddings_))
    )
    assert after > first + 0.05, (first, after)


def test_the_same_seed_gives_the_same_towers() -> None:
    first, second = (feature_towers(X, Z, 4, hidden=(8,), random_state=3)[0] for _ in range(2))
    for name, value in first.state_dict().items():
        torch.testing.assert_close(value, second.state_dict()[name], rtol=0, atol=0)


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ValueError, match=r"left has 10 columns and right has 9; both must be vectors of one encoder"):
        feature_towers(X, Z[:, :9], 4)
    with pytest.raises(ValueError, match="n_components is 11"):
        feature_towers(X, Z, 11)
    with pytest.raises(ValueError, match="scale"):
        feature_towers(X, Z, 4, scale=0.0)
