"""Towers and an index learned together: better than compressing afterwards, exact codes, exact resume."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import nearkin as nk
from nearkin.embedding import ALS, Adam, AllPairsLoss, Joint
from nearkin.embedding.two_tower.als import descend_left
from nearkin.embedding.two_tower.joint import DEFAULTS, right_forms, student_loss
from nearkin.quantization import IndexingLayer
from tests.covering import each

SWEEPS = DEFAULTS.sweeps
PLANTED = nk.data.planted_interactions(200, 150, random_state=0).interactions
PAIRS = replace(PLANTED, left_features=None, right_features=None)


def layer(**options: object) -> IndexingLayer:
    return IndexingLayer(8, 2, 16, max_iter=10, **options)  # pyright: ignore[reportArgumentType]


def model(seed: int = 0, **options: object) -> nk.TwoTower:
    settings = {"index": layer(), "regularization": 0.01, "random_state": seed, **options}
    return nk.TwoTower(8, **settings)  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def fitted() -> nk.TwoTower:
    return model().fit(PAIRS)


def kept(left: np.ndarray, right: np.ndarray, fitted: nk.TwoTower, k: int = 20) -> float:
    """Share of each left entity's exact first k that are found."""
    P, Q = fitted.exact_embeddings_
    _, exact = nk.metrics.recommend(P, Q, k, seen=PAIRS)
    _, found = nk.metrics.recommend(left, right, k, seen=PAIRS)
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]))


def test_joint_learning_keeps_more_of_the_exact_answers_than_compressing_afterwards(fitted: nk.TwoTower) -> None:
    """In the mean of three seeds. One codebook for the whole row: seeds differ by .007, with two codebooks by .014."""
    assert fitted.solver_ == "joint"
    gains = []
    for seed in range(3):
        learned = model(seed, index=IndexingLayer(8, 1, 16, max_iter=10)).fit(PAIRS)
        P, Q = learned.exact_embeddings_
        after = nk.ProductQuantizer(1, 16, random_state=seed).fit(Q)
        joint = kept(learned.left_embeddings_, learned.right_embeddings_, learned)
        gains.append(joint - kept(P, after.decode(after.encode(Q)), learned))
    assert np.mean(gains) > 0, gains


def test_every_round_lowers_the_loss(fitted: nk.TwoTower) -> None:
    rounds = [entry["objective"] for entry in fitted.history_[SWEEPS:]]
    assert all(b < a for a, b in pairwise(rounds)), rounds


def test_the_right_embeddings_are_the_codes_of_the_index(fitted: nk.TwoTower) -> None:
    codes = fitted.index_.codes(fitted.right_embeddings_)
    np.testing.assert_allclose(fitted.index_.to_quantizer().decode(codes), fitted.right_embeddings_, atol=1e-5)
    scores, _ = fitted.recommend(fitted.left_ids_[:5], k=3, exclude_seen=False)
    index = nk.Index.build(fitted.right_embeddings_, fitted.index_.to_quantizer(), fitted.right_ids_, "ip")
    found, _ = index.search(fitted.left_embeddings_[:5], 3)
    np.testing.assert_allclose(found, scores, rtol=1e-4)


def test_the_forms_are_the_losss_second_derivative() -> None:
    generator = torch.Generator().manual_seed(0)
    P, Q = (torch.randn(n, 3, generator=generator, dtype=torch.float64) for n in (200, 150))
    loss = student_loss(P.float(), Q.float(), PAIRS)
    forms, j = right_forms(loss, P, Q), 7
    H = forms.gram + forms.ridge[j] * np.eye(3)
    for t in range(forms.indptr[j], forms.indptr[j + 1]):
        p = forms.points[forms.places[t]]
        H = H + forms.curvature[t] * np.outer(p, p)
    target = descend_left(loss.transposed(), Q, P)  # where every row of Q would like to be
    moved = Q.clone()
    moved[j] = target[j]
    e = (Q - target)[j].numpy()
    assert loss.value(P, Q) - loss.value(P, moved) == pytest.approx(e @ H @ e / 2, rel=1e-4)


def test_the_students_loss_is_the_dense_sum_of_errors_against_the_teacher(rng: np.random.Generator) -> None:
    """Others than those on lists weigh omega, the share of pairs on lists; the penalty is a share of the curvature."""
    (m, n), k = PAIRS.shape, 3
    teacher, student = ([rng.standard_normal((size, k)) for size in (m, n)] for _ in range(2))
    P, Q, X, T = (torch.tensor(table) for table in (*teacher, *student))
    loss = student_loss(P.float(), Q.float(), PAIRS)
    on_lists = loss.pairs
    lists = np.zeros((m, n), bool)
    lists[np.repeat(np.arange(m), np.diff(on_lists.indptr)), on_lists.indices] = True
    assert not (lists & (PAIRS.matrix().toarray() > 0)).any(), "seen pairs are on no list"
    errors = (student[0] @ student[1].T - teacher[0] @ teacher[1].T) ** 2 / 2
    wanted = errors[lists].sum() + lists.mean() * errors[~lists].sum()
    for table, own, other in ((student[0], m, teacher[1]), (student[1], n, teacher[0])):
        wanted += DEFAULTS.ridge / 2 * (table**2).sum() * lists.sum() * (other**2).mean() / own
    assert loss.value(X, T) == pytest.approx(wanted, rel=1e-5)


@each("loss", ["all-pairs", "in-batch-softmax"])
def test_training_by_gradient_looks_through_the_index(loss: str) -> None:
    index = layer(rotation="givens-random", warmup_steps=2, buffer_size=100)
    solver = Adam(max_iter=5, batch_size=None if loss == "all-pairs" else 256, patience=99)
    model = nk.TwoTower(8, index=index, loss=loss, regularization=0.01, random_state=0, solver=solver).fit(PAIRS)
    assert model.index_.phase == "train"
    assert model.history_[-1]["distortion"] > 0


def test_a_saved_model_gives_its_index_back(fitted: nk.TwoTower, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m")
    loaded = nk.TwoTower.load(tmp_path / "m", index=layer())
    codes = [one.index_.codes(one.right_embeddings_) for one in (loaded, fitted)]
    np.testing.assert_array_equal(*codes)
    assert nk.TwoTower.load(tmp_path / "m").index_ is None


def test_what_cannot_be_trained_is_said() -> None:
    small = nk.TwoTower(8, index=IndexingLayer(8, 2, 512), regularization=0.01, random_state=0)
    with (
        pytest.warns(UserWarning, match="vectors: 150"),
        pytest.raises(ValueError, match="more vectors than the 150 items"),
    ):
        small.fit(PAIRS)


def test_an_index_is_learned_from_a_softmax_on_cosines_too() -> None:
    fitted = nk.TwoTower(8, index=layer(), loss="cosine-softmax", random_state=0).fit(PAIRS)
    assert fitted.solver_ == "joint"
    P, Q = fitted.exact_embeddings_
    np.testing.assert_allclose(np.linalg.norm(Q[:, :-1], axis=1), 1, rtol=1e-5)
    after = nk.ProductQuantizer(2, 16, random_state=0).fit(Q)
    joint = kept(fitted.left_embeddings_, fitted.right_embeddings_, fitted)
    assert joint > kept(P, after.decode(after.encode(Q)), fitted)
    codes = fitted.index_.codes(fitted.right_embeddings_)
    np.testing.assert_allclose(fitted.index_.to_quantizer().decode(codes), fitted.right_embeddings_, atol=1e-5)


def test_a_right_without_pairs_counts_as_one_where_the_index_starts() -> None:
    """Of weight 0 it would move no centroid, and its code would be of the others' only."""
    pairs = nk.Interactions.from_pairs([0, 0, 1, 2], ["a", "b", "a", "a"], right_ids=["a", "b", "c"])
    tables = torch.zeros(3, 2), torch.zeros(3, 2)
    solver = Joint().follow(ALS().alternate(AllPairsLoss(pairs), *tables), layer(), pairs, np.full(4, 0.5))
    assert solver.importance.tolist() == [2.5, 1.5, 1.0]
