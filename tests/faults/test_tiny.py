"""Fits on a handful of rows, drawn at random: a model with finite numbers, or a ValueError that says what to give.

Few rows, few distinct ones, columns that are constant and ranks of one are where sums are empty and spreads zero.
"""

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nearkin as nk
from nearkin import quantization
from tests.covering import each

DRAWS = 8
CODECS: dict[str, Callable[[int], Any]] = {
    "product": lambda n: nk.ProductQuantizer(n, 4, max_iter=3, random_state=0),
    "product, Givens": lambda n: nk.ProductQuantizer(n, 4, rotation="givens-greedy", max_iter=3, random_state=0),
    "residual": lambda n: quantization.ResidualQuantizer(n, 4, max_iter=3, random_state=0),
    "axes": lambda n: quantization.AxisQuantizer(n),
    "scalar": lambda n: quantization.ScalarQuantizer(8),
}
LOSSES = {
    "auto": "auto",
    "all-pairs": nk.embedding.AllPairs(),
    "cosine-softmax": nk.embedding.CosineSoftmax(imputed=0.3),
}
HASHERS = {"ITQ": nk.ITQ, "OnE": nk.OnE, "OgE": nk.OgE, "PCAHash": nk.PCAHash, "hyperplanes": nk.RandomHyperplanes}


def tiny(rng: np.random.Generator) -> np.ndarray:
    """Rows (n, d) float32 of any length, up to 12 by 33: plain, whole, of length 1, half constant, or few distinct."""
    n, d = int(rng.integers(1, 13)), int(rng.choice([1, 2, 3, 5, 8, 16, 33]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    kind = rng.integers(5)
    X = np.round(X) if kind == 1 else X / np.linalg.norm(X, axis=1, keepdims=True) if kind == 2 else X
    X[:, : d // 2] *= kind != 3
    return (X[rng.integers(0, max(1, n // 2), n)] if kind == 4 else X).astype(np.float32)


def drawn(name: str, fit: Callable[[np.random.Generator], np.ndarray]) -> int:
    """How many of the draws are fitted; each of the others ends in a ValueError that somebody wrote."""
    fitted, lines = 0, {}
    for seed in range(DRAWS):
        try:
            found = fit(np.random.default_rng(seed))
        except ValueError as error:
            lines[seed] = (traceback.extract_tb(error.__traceback__)[-1].line, str(error))
        else:
            assert np.isfinite(found).all(), f"{name}, seed {seed}"
            fitted += 1
    unforeseen = {seed: found for seed, found in lines.items() if not found[0].startswith("raise ")}
    assert not unforeseen, f"{name}: {unforeseen}"
    return fitted


@each("name", CODECS)
def test_codecs(name: str) -> None:
    def fit(rng: np.random.Generator) -> np.ndarray:
        X = tiny(rng)
        model = CODECS[name](int(rng.integers(1, X.shape[1] + 1))).fit(X)
        nk.Index.build(X, model).search(X, 3)
        return model.decode(model.encode(X))

    assert drawn(name, fit) > DRAWS // 5


def test_hashers() -> None:
    for name, hasher in HASHERS.items():

        def fit(rng: np.random.Generator, hasher: Callable[..., Any] = hasher) -> np.ndarray:
            X = tiny(rng)
            return hasher(int(rng.integers(1, 4)), random_state=0).fit(X).project(X)

        assert drawn(name, fit) > DRAWS // 5


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore:the covariance of X is isotropic")
def test_rotations_ids_and_bridges() -> None:
    def bridge(rng: np.random.Generator) -> np.ndarray:
        X = tiny(rng)
        return nk.Bridge(random_state=0).fit(X[:, ::-1], X).transform(X[:, ::-1])

    assert drawn("Rotation", lambda rng: nk.Rotation("sign", random_state=0).fit(tiny(rng)).rotation_) > DRAWS // 5
    assert drawn("SemanticIds", lambda rng: nk.SemanticIds(2, 4, random_state=0).fit(tiny(rng)).ids_) > DRAWS // 5
    assert drawn("Bridge", bridge) > DRAWS // 5


@each("loss", LOSSES)
def test_towers(loss: str) -> None:
    def fit(rng: np.random.Generator) -> np.ndarray:
        m, n, pairs = rng.integers(1, 12, 3)
        table = nk.Interactions.from_pairs(rng.integers(0, m, 2 * pairs), rng.integers(0, n, 2 * pairs))
        model = nk.TwoTower(int(rng.choice([2, 8])), loss=LOSSES[loss], random_state=0).fit(table)
        return np.concatenate([model.left_embeddings_, model.right_embeddings_])

    assert drawn(loss, fit) > DRAWS // 5


@each("loss", ["gnmds", "ckl", "ste", "t-ste", "soe"])
def test_maps_of_few_comparisons(loss: str) -> None:
    def fit(rng: np.random.Generator) -> np.ndarray:
        n = int(rng.integers(3, 8))
        rows = np.stack([rng.choice(n, 3, replace=False) for _ in range(rng.integers(1, 12))])
        return nk.OrdinalEmbedding(int(rng.choice([1, 2, 5])), loss=loss, random_state=0).fit(rows).embedding_

    assert drawn(loss, fit) > DRAWS // 5
