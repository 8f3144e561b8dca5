"""The estimator: planted structure found, features for unseen rows, saving, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from torch import nn

import nearkin as nk
from nearkin.data.interactions import Parts
from nearkin.embedding import ALS, AllPairs, Tower
from tests.covering import each
from tests.refusals import each_refused


@pytest.fixture(scope="module")
def parts() -> Parts:
    planted = nk.data.planted_interactions(300, 150, random_state=0)
    return nk.data.split_random(planted.interactions, random_state=0)


def bare(pairs: nk.Interactions) -> nk.Interactions:
    return nk.Interactions.from_pairs(pairs.rows, pairs.indices, left_ids=pairs.left_ids, right_ids=pairs.right_ids)


@pytest.fixture(scope="module")
def fitted(parts: Parts) -> nk.TwoTower:
    return nk.TwoTower(16, random_state=0).fit(parts.train)


def test_blocks_are_found_and_the_withheld_pair_comes_first() -> None:
    """Left and right of one block go together; of each block one pair is withheld."""
    block = np.kron(np.eye(4), np.ones((6, 5)))
    block[::6, ::5] *= 1 - np.eye(4)
    model = nk.TwoTower(4, random_state=0).fit(nk.Interactions.from_matrix(sp.csr_matrix(block)))
    _, ids = model.recommend(np.arange(0, 24, 6), k=1)
    assert ids.ravel().tolist() == [0, 5, 10, 15]


@each("side", ["left", "right"])
def test_similar_ones_have_the_largest_cosines_of_their_side(fitted: nk.TwoTower, side: str) -> None:
    X = getattr(fitted, f"{side}_embeddings_")
    cosines = X @ X[4] / np.maximum(np.linalg.norm(X, axis=1) * np.linalg.norm(X[4]), 1e-9)
    scores, ids = fitted.similar([4, 7], k=3, side=side)
    assert ids.shape == scores.shape == (2, 3)
    assert ids[0].tolist() == getattr(fitted, f"{side}_ids_")[np.argsort(-cosines)[1:4]].tolist()
    np.testing.assert_allclose(scores[0], np.sort(cosines)[::-1][1:4], rtol=1e-5)


def test_all_users_candidates_and_a_coded_index_are_asked_alike(parts: Parts, fitted: nk.TwoTower) -> None:
    scores, ids = fitted.recommend(k=5)
    assert ids.shape == (300, 5)
    one, other = fitted.recommend([7, 3], k=5)
    np.testing.assert_array_equal(ids[[7, 3]], other)
    np.testing.assert_allclose(scores[[7, 3]], one, rtol=1e-5)
    own = set(parts.train.indices[: parts.train.indptr[1]].tolist())
    within, without = (fitted.recommend([0], k=20, exclude_seen=seen)[1] for seen in (False, True))
    assert own & set(within[0].tolist())
    assert not own & set(without[0].tolist())
    _, allowed = fitted.recommend([7], k=3, candidates=[1, 2, 3, 4, 5, 6, 7, 8], exclude_seen=False)
    assert set(allowed[0].tolist()) <= set(range(1, 9))
    quantizer = nk.ProductQuantizer(4, 16, random_state=0)
    index = nk.Index.build(fitted.right_embeddings_, quantizer, metric="ip")
    _, coded = fitted.recommend(k=5, index=index.faiss_index)
    seen = parts.train.matrix()
    assert not any(seen[row, column] for row in range(300) for column in coded[row] if column >= 0)
    assert np.mean([np.isin(a, b).mean() for a, b in zip(ids, coded, strict=True)]) > 0.3


def test_saving_and_loading_give_the_same_answers(parts: Parts, fitted: nk.TwoTower, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = nk.TwoTower.load(tmp_path / "model")
    for one, other in zip(loaded.recommend([1, 2], 5), fitted.recommend([1, 2], 5), strict=True):
        np.testing.assert_array_equal(one, other)
    x = parts.train.right_features[:3]
    np.testing.assert_array_equal(loaded.transform_right(x), fitted.transform_right(x))
    assert loaded.get_params()["n_components"] == 16
    assert loaded.regularization_ == fitted.regularization_


def test_pairs_of_another_record_are_matched_by_their_ids(parts: Parts, fitted: nk.TwoTower) -> None:
    """A file of test pairs that is read alone numbers its ids in its own way, at times as many as the model has."""

    def alone(pairs: nk.Interactions, add: int = 0, also: slice = slice(0)) -> nk.Interactions:
        rows, columns = (np.r_[getattr(pairs, part), getattr(parts.train, part)[also]] for part in ("rows", "indices"))
        return nk.Interactions.from_pairs(parts.train.left_ids[rows] + add, parts.train.right_ids[columns])

    wanted = pytest.approx(fitted.evaluate(parts.test))
    assert fitted.score(parts.test, k=5) == fitted.evaluate(parts.test, k=5)["ndcg@5"]
    assert fitted.evaluate(alone(parts.test)) == wanted
    assert fitted.evaluate(alone(parts.test, also=slice(99))) == wanted  # fitted pairs are no misses
    with pytest.raises(ValueError, match=r"left has 1 id that left_ids lacks, the first is 300 .* leave these entries"):
        fitted.evaluate(alone(parts.test, add=1))
    with pytest.raises(ValueError, match="relevant has no pair that counts: unseen"):
        fitted.evaluate(parts.train)
    model = nk.TwoTower(2, loss="all-pairs", solver=nk.embedding.Adam(max_iter=3), regularization=0.02, random_state=0)
    fits = [model.fit(parts.train, validation=held).left_embeddings_ for held in (parts.valid, alone(parts.valid))]
    np.testing.assert_array_equal(*fits)


def test_bad_data_and_calls_are_named(parts: Parts, fitted: nk.TwoTower) -> None:
    plain = nk.TwoTower(4, loss="all-pairs", regularization=0.1, random_state=0).fit(bare(parts.train))
    each_refused([
        (lambda: nk.TwoTower().fit(np.eye(3)), TypeError, "interactions is of type ndarray; it must be Interactions"),
        (lambda: nk.TwoTower().recommend([0]), NotFittedError, ""),
        (lambda: fitted.recommend([1000]), ValueError, "left has 1 id that left_ids lacks, the first is 1000"),
        (lambda: fitted.recommend(np.arange(300) < 2), TypeError, "left has ids that are not all numbers"),  # a mask
        (lambda: plain.transform_left(np.ones((2, 16))), ValueError, "fitted without features on this side"),
        (lambda: fitted.similar([999], side="right"), ValueError, "right has 1 id that right_ids lacks, .*999"),
        (lambda: fitted.similar([4], side="both"), ValueError, "side is 'both'; it must be one of 'left', 'right'"),
        (lambda: fitted.recommend([7], candidates=[9999]), ValueError, "right has 1 id that right_ids lacks"),
    ])  # fmt: skip


@each(("ids", "none"), [([5, 6, 7], -1), (np.array([5, 6, 7], np.uint8), -1), (["a", "böb", "c"], "")])
def test_where_nothing_is_left_to_recommend_no_id_is_given(ids: list, none: object, tmp_path: Path) -> None:
    """Of more columns than rows, and read from a folder too."""
    pairs = nk.Interactions.from_pairs([0, 0, 1, 1, 1], [ids[0], ids[1], *ids])
    model = nk.TwoTower(5, loss="all-pairs", regularization=0.1, random_state=0).fit(pairs)
    model.save(tmp_path / "model")
    for one in (model, nk.TwoTower.load(tmp_path / "model")):
        scores, found = one.recommend([0, 1], k=2)
        assert found.tolist() == [[ids[2], none], [none, none]]
        assert np.isneginf(scores[1]).all()


PAIRS = nk.data.planted_interactions(40, 30, random_state=0).interactions


def test_settings_are_read_as_objects_and_an_index_that_was_not_there_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    prior = tuple(rng.normal(size=(n, 2)) for n in PAIRS.shape)
    loss, solver = AllPairs(omega=0.1, weighting="none", prior=prior), ALS(max_iter=2)
    nk.TwoTower(4, loss=loss, solver=solver, left=Tower((8,)), random_state=0).fit(PAIRS).save(tmp_path / "m")
    model = nk.TwoTower.load(tmp_path / "m", left=nn.Linear(3, 4))  # a module fills what is not saved alone
    np.testing.assert_equal(model.loss.get_params(), loss.get_params())
    assert model.solver.get_params() == solver.get_params()
    assert isinstance(model.left, Tower)
    assert model.left.hidden == (8,)
    with pytest.raises(ValueError, match="was fitted without an index"):
        nk.TwoTower.load(tmp_path / "m", index=nk.quantization.IndexingLayer(4, 2, 4))
