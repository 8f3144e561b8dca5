from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import f

from nearkin.data.comparisons import comparisons_from_array
from nearkin.data.comparisons.forms import orient, turn
from nearkin.data.comparisons.reading import read_comparisons
from nearkin.data.comparisons.votes import comparisons_from_vectors, distinct_rows
from nearkin.embedding import OrdinalEmbedding
from nearkin.embedding.ordinal.answers import (
    align,
    by_judgement,
    choose_dimension,
    count_per_object,
    direction_notes,
    error_interval,
    group_objects,
    rater_reliability,
    reversed_raters,
)
from nearkin.metrics.ordinal import satisfied, triplet_error
from tests.covering import each
from tests.refusals import each_refused


def test_groups_are_joined_by_pairs_only():
    """d(0, 1) < d(2, 3) compares the scales of two pairs, and leaves their relative position open."""
    groups = group_objects(comparisons_from_array([[0, 1, 2, 3]]))
    assert groups[0] == groups[1] != groups[2] == groups[3]
    assert len(set(group_objects(comparisons_from_array([[0, 1, 2], [2, 3, 1]])).tolist())) == 1


def test_counts_take_a_row_once():
    answers = comparisons_from_array([[0, 1, 1, 2], [0, 1, 2, 0], [3, 2, 0, 1]])
    assert count_per_object(answers).tolist() == [3, 3, 3, 1]


def test_no_more_dimensions_are_tried_than_answers_can_tell_apart():
    """n points satisfy any answers in n - 2 dimensions: of five objects one to three, though four would be tried."""
    points, tried = np.random.default_rng(0).standard_normal((5, 2)), []
    answers = comparisons_from_vectors(points, 60, random_state=1)

    def embed(train, n_components):
        tried.append(n_components)
        return np.pad(points, ((0, 0), (0, max(0, n_components - 2))))[:, :n_components]

    choose_dimension(answers, embed, np.random.default_rng(2))
    assert set(tried) == {1, 2, 3}


def test_coin_flips_are_told_from_answers_of_points():
    """By the .2 % quantile of as many flips: 80 of 200. Of 540 sets of flips 47 were below the 1 % quantile."""
    points = np.random.default_rng(0).standard_normal((9, 2))
    answers = comparisons_from_vectors(points, 200, random_state=1)
    _, curve = choose_dimension(answers, lambda train, n_components: points[:, :n_components], np.random.default_rng(0))
    assert curve["chance"] == 80 / 200
    assert min(curve["error"]) < 0.1
    flipped = answers.indices.copy()
    wrong = np.random.default_rng(2).random(200) < 0.5
    flipped[wrong] = flipped[wrong][:, [0, 2, 1]]
    coins = comparisons_from_array(flipped)
    _, curve = choose_dimension(coins, lambda train, n_components: points[:, :n_components], np.random.default_rng(0))
    assert min(curve["error"]) > curve["chance"]


def answered(seed=0, names="ABCDEFGH", per_object=30):
    """Answers of eight raters about 30 points in the plane: the first two toss coins, the others err in a tenth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0, 1, (30, 2))
    answers = comparisons_from_vectors(X, per_object * 30, random_state=rng)
    who = rng.integers(0, 8, len(answers))
    wrong = rng.random(len(answers)) < np.where(who < 2, 0.5, 0.1)
    answers = replace(answers, indices=orient(answers.indices, ~wrong), annotators=np.array(list(names))[who])
    return answers, comparisons_from_vectors(X, 3000, random_state=rng)


@each("loss", ["ste", "gnmds"])
def test_random_raters_get_the_lowest_weights_and_the_error_falls(loss):
    answers, test = answered()
    equal = OrdinalEmbedding(2, loss=loss, random_state=0).fit(answers)
    estimated = OrdinalEmbedding(2, loss=loss, random_state=0).fit(answers, raters="estimated")
    found = estimated.rater_reliability_
    assert set(sorted(found, key=found.get)[:2]) == {"A", "B"}
    assert max(found["A"], found["B"]) < 0.3
    assert min(found[name] for name in "CDEFGH") > 0.4
    assert max(found.values()) == 1.0
    assert triplet_error(estimated.embedding_, test) < triplet_error(equal.embedding_, test) - 0.01
    assert equal.rater_reliability_ is None


def test_votes_multiply_with_reliability():
    answers, _ = answered(per_object=10)
    votes = np.random.default_rng(0).integers(1, 4, len(answers)).astype(float)
    model = OrdinalEmbedding(2, random_state=0).fit(replace(answers, weights=votes), raters="estimated")
    by_rater = np.array([model.rater_reliability_[name] for name in answers.annotators.tolist()])
    np.testing.assert_allclose(model.comparisons_.weights, votes * by_rater, rtol=1e-6)


def test_errors():
    answers, fit = answered(per_object=10)[0], OrdinalEmbedding(2).fit
    nameless = replace(answers, annotators=None)
    nothing = comparisons_from_array([[0, 1, 2]]).take(slice(0, 0))
    each_refused([
        (lambda: fit(nameless, raters="estimated"), ValueError, "name no annotators; use raters='equal'"),
        (lambda: fit(answers, raters="both"), ValueError, "raters is 'both'; it must be one of 'equal', 'estimated'"),
        (lambda: fit(answers.take([0, 1]), raters="estimated"), ValueError, "2 different questions; .* needs 4"),
        (lambda: error_interval(np.zeros((3, 1)), nothing), ValueError, "comparisons is empty"),
    ])  # fmt: skip


def test_align_undoes_a_turn_a_scale_and_a_shift(rng):
    X = rng.normal(size=(12, 3))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    rows = np.arange(12) < 9
    np.testing.assert_allclose(align(0.3 * X @ turn + [1.0, -2.0, 5.0], X, rows), X, atol=1e-12)


def test_interval_of_the_error_holds_the_error_to_come(rng):
    """90 % intervals from 300 answers hold the error of 20,000 others in nine of ten cases or so."""
    points = rng.normal(size=(20, 2))
    guess = points + rng.normal(0, 0.4, (20, 2))
    to_come = triplet_error(guess, comparisons_from_vectors(points, 20_000, noise=0.1, random_state=0))
    held = 0
    for seed in range(20):
        answers = comparisons_from_vectors(points, 300, noise=0.1, random_state=seed + 1)
        low, high = error_interval(guess, answers)
        held += low <= to_come <= high
    assert 15 <= held <= 20


def rated(points, rng, raters, noise=0.5, chance=0):
    """Comparisons of ratings of all pairs of points by each rater, the first `chance` raters' without sense."""
    i, j = np.triu_indices(len(points), 1)
    rows = [
        (f"o{a:02}", f"o{b:02}", rng.random() if rater < chance else distance + rng.normal(0, noise), rater)
        for rater in range(raters)
        for a, b, distance in zip(i, j, np.linalg.norm(points[i] - points[j], axis=1), strict=True)
    ]
    return read_comparisons(pd.DataFrame(rows, columns=["a", "b", "rating", "rater"]), form="rated", scale=(99, -99))


def triplets(points, rng, count=900):
    """Answers with the probabilities of STE's model."""
    rows = distinct_rows(len(points), count, 3, rng)
    near, far = (((points[rows[:, 0]] - points[rows[:, side]]) ** 2).sum(axis=1) for side in (1, 2))
    return comparisons_from_array(orient(rows, rng.random(count) < expit(far - near)))


@each("make", [partial(rated, raters=1), partial(rated, raters=3), triplets])
def test_ellipses_hold_the_true_places(make):
    """95 % ellipses of 12 objects, four times. Of single comparisons of ratings they held a third or less, and draws
    that stop early leave out a part."""
    inside = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(12, 2))
        model = OrdinalEmbedding(2, n_init=1, random_state=0).fit(make(points, rng))
        draws = model.bootstrap(30)
        truth = align(points, model.embedding_, np.ones(12, bool))
        for place, cloud in zip(truth, draws.transpose(1, 0, 2), strict=True):
            apart = place - cloud.mean(axis=0)
            square = apart @ np.linalg.solve(np.cov(cloud.T), apart)
            inside.append(square < 2 * (30**2 - 1) / (30 * 28) * f.ppf(0.95, 2, 28))  # Hotelling's, of 30 draws
    assert np.mean(inside) > 0.85


@each("make", [partial(rated, raters=1), triplets])
def test_answers_read_in_the_wrong_direction_are_named(make, rng):
    answers = make(rng.normal(size=(12, 2)), rng)
    for part, n_notes in ((answers, 0), (turn(answers, np.full(len(answers), -1)), 1)):
        notes = direction_notes(part, OrdinalEmbedding(2, loss="ste", n_init=1, random_state=0).fit_transform, rng)
        assert len(notes) == n_notes, notes


def test_the_interval_of_ratings_counts_ratings():
    """90 % intervals from 28 ratings hold the error of others; of single answers 72 % did."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(8, 2))
    guess = points + rng.normal(0, 0.5, (8, 2))
    studies = [rated(points, np.random.default_rng(seed), 1) for seed in range(60)]
    to_come = np.mean([triplet_error(guess, answers) for answers in studies])
    held = [low <= to_come <= high for low, high in (error_interval(guess, answers) for answers in studies)]
    assert 0.8 <= np.mean(held) <= 1


def test_an_interval_without_wrong_answers_has_a_width():
    points = np.random.default_rng(0).normal(size=(20, 2))
    low, high = error_interval(points, comparisons_from_vectors(points, 40, random_state=1))
    assert low == pytest.approx(0, abs=1e-12)
    assert 0.03 < high < 0.2


def test_values_of_judgements_have_the_standard_error_of_the_share():
    """Of ratings, whose comparisons share them, it is several times that of as many single answers."""
    points, errors, shares = np.random.default_rng(5).normal(size=(16, 2)), [], []
    for seed in range(40):
        answers = rated(points, np.random.default_rng(seed), 1)
        values = by_judgement(answers, satisfied(points, answers))
        shares.append(1 - triplet_error(points, answers))
        assert values.mean() == pytest.approx(shares[-1])
        errors.append(values.std(ddof=1) / len(values) ** 0.5)
    assert np.mean(errors) == pytest.approx(np.std(shares), rel=0.35)
    assert np.mean(errors) > 2 * (np.mean(shares) * (1 - np.mean(shares)) / len(answers)) ** 0.5


def test_raters_by_chance_are_not_taken_for_opposite():
    """Comparisons of one person's ratings are not independent: some were called opposite."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(10, 2))
        noisy = rated(points, rng, 6, noise=0.3, chance=2)
        assert reversed_raters(noisy, lambda train, X=points: X, rng) == {}
    weights = rater_reliability(noisy, lambda train: points, rng)
    assert max(weights[0], weights[1]) < min(weights[rater] for rater in range(2, 6))
