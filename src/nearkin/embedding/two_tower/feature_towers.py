"""Towers over features that are good vectors already: they begin as their principal components and learn the rest."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from nearkin._check import check_integer, check_real, check_vectors
from nearkin._random import torch_generator
from nearkin._types import ArrayLike, Seed
from nearkin.embedding.two_tower.towers import FeatureBranch


class FeatureTower(nn.Module):
    """x (b, d) -> scale * normalised(W (x - mean) + g(x)) (b, k), g a `FeatureBranch`, which is 0 at first, or none.

    W begins as the first k principal directions, so before any training cosines are about those of the centred
    features: what a text or image encoder knows stays where the pairs say nothing.
    """

    mean: Tensor

    def __init__(self, mean: Tensor, directions: Tensor, branch: FeatureBranch | None, scale: float) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.directions = nn.Parameter(directions.clone())  # (d, k)
        self.scale = nn.Parameter(torch.tensor(float(scale)))
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        y = (x - self.mean) @ self.directions
        return self.scale * normalize(y if self.branch is None else y + self.branch(x), dim=1)


def feature_towers(
    left: ArrayLike,
    right: ArrayLike,
    n_components: int = 64,
    *,
    hidden: tuple[int, ...] = (),
    scale: float = 4.0,
    random_state: Seed = None,
) -> tuple[FeatureTower, FeatureTower]:
    """A tower for each side, whose features are vectors of one encoder: left (m, d) and right (n, d).

    Both begin as the same principal components of the rows of both sides, and learn apart. `hidden` are the widths of a
    nonlinear part, which begins at 0. `scale` is the length of the embeddings at first, so scale^2 is what cosines are
    multiplied by: 4 to 5 suits `loss="in-batch-softmax"`, 1 `loss="all-pairs"`. ValueError for sides of different
    widths, and for more components than columns.

    >>> import numpy as np, nearkin as nk
    >>> X = np.random.default_rng(0).standard_normal((50, 12)).astype(np.float32)
    >>> pairs = nk.Interactions.from_pairs(range(30), range(30)).with_features(left=X[:30], right=X[20:])
    >>> left, right = nk.embedding.feature_towers(X[:30], X[20:], 8, random_state=0)
    >>> adam = nk.embedding.Adam(max_iter=2, learning_rate=1e-3, batch_size=16)
    >>> model = nk.TwoTower(8, left=left, right=right, loss="in-batch-softmax", solver=adam, random_state=0).fit(pairs)
    >>> model.transform_right(X[:2]).shape
    (2, 8)
    """
    X, Z = (check_vectors(features, name=name) for features, name in ((left, "left"), (right, "right")))
    if X.shape[1] != Z.shape[1]:
        raise ValueError(
            f"left has {X.shape[1]} columns and right has {Z.shape[1]}; both must be vectors of one encoder. With "
            "features of two kinds leave the towers out: the default ones begin at nothing"
        )
    k = check_integer(n_components, "n_components", low=1, high=X.shape[1])
    check_real(scale, "scale", above=0)
    both = np.concatenate([X, Z])
    mean = both.mean(axis=0, dtype=np.float64)
    directions = np.linalg.eigh((both - mean).T @ (both - mean))[1][:, ::-1][:, :k]
    start = torch.from_numpy(mean).float(), torch.from_numpy(directions.astype(np.float32))
    generator = torch_generator(random_state)
    branches = [FeatureBranch(X.shape[1], k, tuple(hidden), generator) if hidden else None for _ in range(2)]
    for branch in branches:
        if branch is not None:
            branch.fit_scale(both)
    return FeatureTower(*start, branches[0], scale), FeatureTower(*start, branches[1], scale)
