"""What came from one judgement is held out together: ratings, rankings, choices, repeated clicks."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import nearkin as nk
from nearkin.data import comparisons_from_array, comparisons_from_names, split_comparisons
from nearkin.data.comparisons.forms import turn
from nearkin.data.comparisons.votes import held_out_noise_floor, number_judgements
from nearkin.embedding.ordinal.answers import join
from tests.covering import each


def rated(rng, raters=1, n=12, noise=None, repeats=1, share=1.0):
    """Ratings of all pairs of n points in the plane, or of pure noise."""
    X = rng.normal(size=(n, 2))
    rows = [
        (i, j, rng.random() if noise is None else np.linalg.norm(X[i] - X[j]) + rng.normal(0, noise), rater)
        for rater in range(raters)
        for i, j in list(combinations(range(n), 2)) * repeats
        if rng.random() < share
    ]
    return nk.read_comparisons(pd.DataFrame(rows, columns=["a", "b", "rating", "rater"]), form="rated", scale=(99, -99))


def ranked(rng, count=60):
    """Rankings of four of nine objects by their nearness to a tenth, six comparisons each."""
    orders = [rng.choice(9, 4, replace=False) + 1 for _ in range(count)]
    rows = [(0, near, far) for order in orders for near, far in combinations(order.tolist(), 2)]
    return comparisons_from_array(rows, judgements=np.repeat(np.arange(count), 6))


def chosen(rng, form="odd-one-out"):
    threes = np.stack([rng.choice(12, 3, replace=False) for _ in range(300)])
    return replace(comparisons_from_array(threes, form=form), annotators=np.repeat(np.arange(300) % 6, 2))


MADE = {
    "one rater": rated,
    "several raters": lambda rng: rated(rng, raters=4, share=0.7),
    "rankings": ranked,
    "odd": chosen,
}


@each("by", ["rows", "questions", "objects", "annotators"])
@each("kind", list(MADE))
def test_no_judgement_is_on_both_sides(rng, kind, by):
    answers = MADE[kind](rng)
    if by == "annotators" and (answers.annotators is None or kind == "one rater"):
        return
    train, test = split_comparisons(answers, 0.2, by=by, random_state=1)
    assert not set(train.judgements.ravel().tolist()) & set(test.judgements.ravel().tolist())
    assert len(test) > 20
    if by == "questions":
        whole = nk.Comparisons(np.concatenate([train.indices, test.indices]), answers.objects)
        number = number_judgements(whole)[:, 0]
        assert not set(number[: len(train)].tolist()) & set(number[len(train) :].tolist())


@each("by", ["rows", "questions"])
def test_random_ratings_are_not_predicted(by):
    """Single comparisons were held out: errors of .35 in one dimension and .13 in five, and 8 to 10 dimensions."""
    errors, dimensions = [], []
    for seed in range(8):
        answers = rated(np.random.default_rng(seed))
        train, test = split_comparisons(answers, 0.2, by=by, random_state=seed)
        errors += [1 - nk.OrdinalEmbedding(p, random_state=0).fit(train).score(test) for p in (1, 5)]
        dimensions += [nk.OrdinalEmbedding("auto", random_state=0).fit(answers).n_components_] if seed < 3 else []
    assert 0.42 < np.mean(errors) < 0.58, errors
    assert dimensions == [1] * 3


def test_true_ratings_are_predicted(rng):
    answers = rated(rng, noise=0.2)
    model = nk.OrdinalEmbedding("auto", random_state=0).fit(answers)
    assert model.n_components_ in (1, 2)
    assert min(model.dimension_curve_["error"]) < model.dimension_curve_["chance"] - 0.1


def test_a_comparison_of_a_held_out_rating_with_another_is_in_neither_part(rng):
    answers = rated(rng)
    train, test = split_comparisons(answers, 0.2, by="questions", random_state=0)
    ratings = [set(part.judgements.ravel().tolist()) for part in (train, test)]
    assert sum(map(len, ratings)) == 66
    assert len(ratings[1]) == 22  # a third: a fifth of the comparisons that are in a part
    assert len(test) / (len(train) + len(test)) == pytest.approx(0.2, abs=0.03)


def test_one_persons_answers_to_a_question_are_together(rng):
    asked = np.stack([rng.choice(8, 3, replace=False) for _ in range(40)])
    answers = comparisons_from_array(np.tile(asked, (6, 1)), annotators=np.repeat([0, 0, 0, 1, 1, 1], 40))
    train, test = split_comparisons(answers, 0.3, random_state=0)
    of = [
        {(*row, who) for row, who in zip(p.indices.tolist(), p.annotators.tolist(), strict=True)} for p in (train, test)
    ]
    assert not of[0] & of[1]
    assert {row[:3] for row in of[0]} & {row[:3] for row in of[1]}  # but others' are not


def test_raters_of_one_pair_have_one_number_where_questions_are_held_out(rng):
    answers = rated(rng, raters=3, n=5)
    assert number_judgements(answers).max() + 1 == 10
    assert number_judgements(answers, shared=False).max() + 1 == 30


def test_judgements_are_kept(rng, tmp_path):
    for answers in (rated(rng), ranked(rng), chosen(rng)):
        rows = rng.permutation(len(answers))[:50]
        np.testing.assert_array_equal(answers.take(rows).judgements, answers.judgements[rows])
        turned = turn(replace(answers, events=None), np.arange(len(answers)) % 2 == 0)
        same = [number_judgements(c) for c in (answers, turned)]
        same[1][1::2] = same[1][1::2, ::-1]  # a reversed comparison has the other pair first
        np.testing.assert_array_equal(*same)
        both = join(answers, answers)
        assert len(np.unique(both.judgements)) == 2 * len(np.unique(answers.judgements))
        assert len(np.unique(join(both, comparisons_from_array(answers.indices)).judgements)) > len(answers)
        model = nk.OrdinalEmbedding(2, max_iter=2, random_state=0).fit(answers)
        model.save(tmp_path / "map", overwrite=True)
        loaded = nk.OrdinalEmbedding.load(tmp_path / "map").comparisons_
        np.testing.assert_array_equal(loaded.judgements, answers.judgements)
        name = "triplets" if answers.n_columns == 3 else "quadruplets"
        np.savez(tmp_path / "a.npz", **{name: answers.indices}, judgements=answers.judgements)
        read = nk.read_comparisons(tmp_path / "a.npz")
        np.testing.assert_array_equal(read.judgements, answers.judgements)
        assert "ignored" not in str(read.source)


def test_choices_fitted_one_by_one_are_still_one_judgement(rng):
    answers = chosen(rng)
    model = nk.OrdinalEmbedding(2, max_iter=2, random_state=0).fit(answers, choices="separate")
    assert model.comparisons_.events is None
    np.testing.assert_array_equal(model.comparisons_.judgements, answers.events)


def test_reversed_rows_have_the_judgements_of_their_pairs():
    named = comparisons_from_names(
        [["a", "b", "c", "d"], ["a", "b", "a", "c"]], judgements=[[0, 1], [0, 2]], responses=[True, False]
    )
    assert named.judgements.tolist() == [[0, 1], [2, 0]]


def test_wrong_judgements_are_refused():
    rows = np.array([[0, 1, 2], [1, 2, 0]])
    with pytest.raises(ValueError, match="judgements has shape"):
        comparisons_from_array(rows, judgements=[1])
    with pytest.raises(ValueError, match=r"judgements has shape \(2, 3\)"):
        nk.Comparisons(rows, np.arange(3), judgements=np.zeros((2, 3), int))
    with pytest.raises(TypeError, match="judgements has dtype float64; it must hold integers"):
        nk.Comparisons(rows, np.arange(3), judgements=np.zeros(2))


def test_too_few_judgements_are_an_error_with_what_is_needed(rng):
    few = rated(rng, n=3)
    with pytest.raises(ValueError, match=r"leaves 1 to train on and 0 to test.*collect more ratings by one rater"):
        split_comparisons(few, 0.2, by="questions", random_state=0)
    with pytest.raises(ValueError, match="there are 6 rated pairs; cross-validation needs 8 or more by one rater"):
        nk.OrdinalEmbedding("auto", random_state=0).fit(rated(rng, n=4))


def test_the_noise_floor_is_of_answers_without_a_common_rating():
    """Two ratings of a pair compared with one of another share its error: they agreed too often, .123 for .137."""
    twice, apart = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        twice.append(held_out_noise_floor(rated(rng, raters=1, n=8, noise=0.5, repeats=2))[0])
        apart.append(held_out_noise_floor(rated(np.random.default_rng(seed), raters=6, n=8, noise=0.5))[0])
    assert np.mean(twice) == pytest.approx(np.mean(apart), rel=0.07)
