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
Fit = Callable[[np.random.Generator], np.ndarray]


def tiny(rng: np.random.Generator) -> np.ndarray:
    """Rows (n, d) float32 of any length, up to 12 by 33: plain, whole, of length 1, half constant, or few distinct."""
    n, d = int(rng.integers(1, 13)), int(rng.choice([1, 2, 3, 5, 8, 16, 33]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    kind = rng.integers(5)
    X = np.round(X) if kind == 1 else X / np.linalg.norm(X, axis=1, keepdims=True) if kind == 2 else X
    X[:, : d // 2] *= kind != 3
    return (X[rng.integers(0, max(1, n // 2), n)] if kind == 4 else X).astype(np.float32)


def coded(make: Callable[[int], Any]) -> Fit:
    def fit(rng: np.random.Generator) -> np.ndarray:
        X = tiny(rng)
        model = make(int(rng.integers(1, X.shape[1] + 1))).fit(X)
        nk.Index.build(X, model).search(X, 3)
        return model.decode(model.encode(X))

    return fit


def hashed(hasher: Callable[..., Any]) -> Fit:
    def fit(rng: np.random.Generator) -> np.ndarray:
        X = tiny(rng)
        return hasher(int(rng.integers(1, 4)), random_state=0).fit(X).project(X)

    return fit


def towers(loss: Any) -> Fit:
    def fit(rng: np.random.Generator) -> np.ndarray:
        m, n, pairs = rng.integers(1, 12, 3)
        table = nk.Interactions.from_pairs(rng.integers(0, m, 2 * pairs), rng.integers(0, n, 2 * pairs))
        model = nk.TwoTower(int(rng.choice([2, 8])), loss=loss, random_state=0).fit(table)
        return np.concatenate([model.left_embeddings_, model.right_embeddings_])

    return fit


def mapped(loss: str) -> Fit:
    def fit(rng: np.random.Generator) -> np.ndarray:
        n = int(rng.integers(3, 8))
        rows = np.stack([rng.choice(n, 3, replace=False) for _ in range(rng.integers(1, 12))])
        return nk.OrdinalEmbedding(int(rng.choice([1, 2, 5])), loss=loss, random_state=0).fit(rows).embedding_

    return fit


def bridged(rng: np.random.Generator) -> np.ndarray:
    X = tiny(rng)
    return nk.Bridge(random_state=0).fit(X[:, ::-1], X).transform(X[:, ::-1])


SHORT: dict[str, Any] = {"max_iter": 3, "random_state": 0}
FITS: dict[str, Fit] = {
    "product": coded(lambda n: nk.ProductQuantizer(n, 4, **SHORT)),
    "product, Givens": coded(lambda n: nk.ProductQuantizer(n, 4, rotation="givens-greedy", **SHORT)),
    "residual": coded(lambda n: quantization.ResidualQuantizer(n, 4, **SHORT)),
    "axes": coded(quantization.AxisQuantizer),
    "scalar": coded(lambda n: quantization.ScalarQuantizer(8)),
    **{made.__name__: hashed(made) for made in (nk.ITQ, nk.OnE, nk.OgE, nk.PCAHash, nk.RandomHyperplanes)},
    "rotation": lambda rng: nk.Rotation("sign", random_state=0).fit(tiny(rng)).rotation_,
    "ids": lambda rng: nk.SemanticIds(2, 4, random_state=0).fit(tiny(rng)).ids_,
    "bridge": bridged,
    "towers, auto": towers("auto"),
    "towers, all pairs": towers(nk.embedding.AllPairs()),
    "towers, softmax": towers(nk.embedding.CosineSoftmax(imputed=0.3)),
    **{loss: mapped(loss) for loss in ("gnmds", "ckl", "ste", "t-ste", "soe")},
}


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore:the covariance of X is isotropic")
@each("name", FITS)
def test_few_rows_are_fitted_or_refused(name: str) -> None:
    """Some of the draws are fitted; each of the others ends in a ValueError that somebody wrote."""
    fitted, lines = 0, {}
    for seed in range(DRAWS):
        try:
            found = FITS[name](np.random.default_rng(seed))
        except ValueError as error:
            lines[seed] = (traceback.extract_tb(error.__traceback__)[-1].line, str(error))
        else:
            assert np.isfinite(found).all(), f"seed {seed}"
            fitted += 1
    assert not {seed: found for seed, found in lines.items() if not found[0].startswith("raise ")}
    assert fitted > DRAWS // 5
