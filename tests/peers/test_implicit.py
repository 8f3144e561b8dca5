"""implicit's tests of recommenders on `TwoTower`: people who like every second item, one of them left out."""

import unittest
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

import nearkin as nk
from tests.peers.kits import load, tests_of

base = load("implicit", "tests/recommender_base_test.py")
als = load("implicit", "tests/als_test.py")
from implicit.utils import ParameterWarning  # noqa: E402

OTHERS = {
    "test_rank_items": "liked items come last there and are left out here",
    "test_serialization$": "a model is a folder and not an open file",
    "test_zero_iterations": "a fit takes at least one step",
    "test_serialization_without_fit": "only a fitted model is saved",
    "test_incremental_retrain": "partial_fit adds pairs and replaces none",
    "test_calculate_loss": "implicit's own loss function",
    "gpu": "needs a GPU build",
    "test_recalculate_after_cpu_conversion": "needs a GPU build",
}


class Recommender:
    """implicit's calls on `TwoTower`, whose ids are the matrix's numbers."""

    def __init__(self, factors: int = 64, regularization: float = 0.01, iterations: int = 15, **settings: Any) -> None:
        solver = nk.embedding.ALS(max_iter=iterations)
        self.model = nk.TwoTower(
            factors, loss="all-pairs", solver=solver, regularization=regularization, random_state=0
        )
        del settings  # of implicit's own solver

    user_factors = property(lambda self: self.model.left_embeddings_)
    item_factors = property(lambda self: self.model.right_embeddings_)

    def fit(self, user_items: sp.spmatrix, show_progress: bool = True, callback: Any = None) -> None:
        if user_items.format != "csr":
            warnings.warn("converted to CSR", ParameterWarning, stacklevel=1)
        self.model.fit(nk.Interactions.from_matrix(user_items), callback=callback)

    def recommend(
        self, userid: Any, user_items: sp.csr_matrix, N: int = 10, filter_already_liked_items: bool = True,
        filter_items: Any = (), recalculate_user: bool = False, items: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        if user_items.format != "csr":
            raise ValueError("user_items must be CSR")
        model, users = self.model, np.atleast_1d(userid)
        ids = np.setdiff1d(model.right_ids_ if items is None else items, filter_items)
        seen = user_items if filter_already_liked_items else None
        if recalculate_user:
            scores, found = nk.metrics.recommend(
                model.embed_left(user_items), model.right_embeddings_, min(N, len(ids)), seen=seen, candidates=ids
            )
        else:
            options = {"exclude_seen": filter_already_liked_items, "candidates": ids}
            scores, found = model.recommend(users, min(N, len(ids)), **options)
        return _for_one(userid, found, scores)

    def similar_items(self, itemid: Any, N: int = 10, filter_items: Any = (), items: Any = None, **new: Any) -> Any:
        return self._similar(itemid, N, filter_items, items, new, "right")

    def similar_users(self, userid: Any, N: int = 10, filter_users: Any = (), users: Any = None, **new: Any) -> Any:
        return self._similar(userid, N, filter_users, users, new, "left")

    def _similar(self, ids: Any, N: int, without: Any, among: Any, new: dict[str, Any], side: str) -> Any:
        if new:
            raise NotImplementedError("embed_left and embed_right, then an index")  # implicit's tests allow it
        own, model = np.atleast_1d(ids)[:, None], self.model
        everybody = model.left_ids_ if side == "left" else model.right_ids_
        scores, found = model.similar(own[:, 0], len(everybody) - 1, side=side)
        found, scores = np.hstack([own, found]), np.hstack([np.ones(own.shape), scores])
        kept = np.isin(found, np.setdiff1d(everybody if among is None else among, without))
        rows = [(row[keep][:N], values[keep][:N]) for row, values, keep in zip(found, scores, kept, strict=True)]
        return _for_one(ids, *(np.array(each) for each in zip(*rows, strict=True)))

    def explain(
        self, userid: int, user_items: sp.csr_matrix, itemid: int, user_weights: Any = None, N: int = 10
    ) -> Any:
        history = user_items[userid]
        added, because = self.model.explain(None, [itemid], N, history=history)
        every = self.model.explain(None, [itemid], history.nnz, history=history)[0]
        return every.sum(), list(zip(because[0, 0], added[0, 0], strict=True))[: history.nnz], None

    def save(self, path: Any) -> None:
        self.model.save(Path(path), overwrite=True)

    def load(self, path: Any) -> Self:
        made = Recommender()
        made.model = nk.TwoTower.load(path)
        return made


def _for_one(asked: Any, found: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = found.astype(np.int32)  # what implicit's compiled metrics read
    return (found, scores) if np.ndim(asked) else (found[0], scores[0])


class TestRecommender(unittest.TestCase, base.RecommenderBaseTestMixin):
    def _get_model(self) -> Recommender:
        return Recommender(factors=32, regularization=0)


als.AlternatingLeastSquares = Recommender
globals().update({name: test for name, test in tests_of(als).items() if name.startswith("test_")})
del tests_of
