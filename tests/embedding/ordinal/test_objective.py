"""One answer of several comparisons as one event: values by hand, a slow twin, central differences, fits, folders."""

from dataclasses import replace

import numpy as np
import pytest

from nearkin.data import comparisons_from_array, split_comparisons
from nearkin.data.comparisons.votes import number_judgements
from nearkin.embedding import OrdinalEmbedding
from nearkin.embedding.ordinal.losses import get_loss
from nearkin.embedding.ordinal.objective import EventObjective, OrdinalObjective, pad_rows, unpad_rows
from nearkin.records import Comparisons
from tests.covering import each
from tests.embedding.ordinal.test_losses import central_differences, relative_error
from tests.refusals import each_refused

N = 7
SIMILARITY = {
    "ste": lambda d2, loss: np.exp(-d2),
    "ckl": lambda d2, loss: 1 / (loss.parameter + d2),
    "t-ste": lambda d2, loss: (loss.parameter + d2) ** (-(loss.parameter + 1) / 2),
}


def odd_one_out(count=12, seed=0):
    """Answers (count, 3), the odd one first, and as comparisons with events."""
    rng = np.random.default_rng(seed)
    rows = np.array([rng.permutation(N)[:3] for _ in range(count)])
    return rows, comparisons_from_array(rows, form="odd-one-out", objects=np.arange(N))


@each("name", SIMILARITY)
def test_value_is_minus_the_logarithm_of_the_share_of_three_similarities(name, rng):
    X, loss = rng.normal(0, 1, (N, 3)), get_loss(name, 3)
    rows, answers = odd_one_out()
    weights = rng.uniform(0.5, 2, len(rows))
    found = EventObjective(answers.indices, N, loss, answers.events, np.repeat(weights, 2))

    def similarity(a, b):
        return SIMILARITY[name](((X[a] - X[b]) ** 2).sum(), loss)

    total = 0.0
    for (odd, a, b), weight in zip(rows, weights, strict=True):
        chosen = similarity(a, b)
        total -= weight * np.log(chosen / (chosen + similarity(a, odd) + similarity(b, odd)))
    np.testing.assert_allclose(found.value(pad_rows(X, np.float64)), N * total / weights.sum(), rtol=1e-12)


@each("p", [1, 3, 5])
@each("name", SIMILARITY)
def test_gradient_is_the_derivative(name, p, rng):
    X = rng.normal(0, 0.7, (N, p))
    _, answers = odd_one_out()
    weights = np.repeat(rng.uniform(0.5, 2, 12), 2)
    problem = EventObjective(answers.indices, N, get_loss(name, p), answers.events, weights)
    found = unpad_rows(problem.gradient(pad_rows(X, np.float64)), p)
    wanted = central_differences(lambda X: problem.value(pad_rows(X, np.float64)), X)
    assert relative_error(found, wanted) < 1e-6


@each("name", SIMILARITY)
def test_events_of_one_comparison_are_comparisons(name, rng):
    x, loss = pad_rows(rng.normal(0, 0.7, (N, 3)), np.float64), get_loss(name, 3)
    _, answers = odd_one_out()
    one_by_one = EventObjective(answers.indices, N, loss, rng.permutation(len(answers)))
    plain = OrdinalObjective(answers.indices, N, loss, dtype=np.float64)
    np.testing.assert_allclose(one_by_one.value(x), plain.value(x), rtol=1e-12)
    np.testing.assert_allclose(one_by_one.gradient(x), plain.gradient(x), rtol=1e-9, atol=1e-12)


def test_a_choice_of_many_is_an_event_too(rng):
    """The nearest of four: three comparisons with one near pair."""
    X = rng.normal(0, 1, (N, 2))
    rows = np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]])
    found = EventObjective(rows, N, get_loss("ste", 2), np.zeros(3, int)).value(pad_rows(X, np.float64))
    shares = np.exp(-((X[0] - X[1:5]) ** 2).sum(axis=1))
    np.testing.assert_allclose(found, -N * np.log(shares[0] / shares.sum()), rtol=1e-12)


def planted(n=20, count=500, seed=0):
    X = np.random.default_rng(seed).normal(0, 1, (n, 2))
    rows = np.array([np.random.default_rng([seed, t]).permutation(n)[:3] for t in range(count)])
    sides = [((X[rows[:, a]] - X[rows[:, b]]) ** 2).sum(axis=1) for a, b in ((1, 2), (0, 2), (0, 1))]
    order = np.array([[0, 1, 2], [1, 0, 2], [2, 0, 1]])[np.argmin(sides, axis=0)]
    return comparisons_from_array(np.take_along_axis(rows, order, axis=1), form="odd-one-out")


@each("loss", ["ste", "t-ste"])
def test_fit_learns_from_choices(loss, tmp_path):
    train, test = split_comparisons(planted(), 0.2, by="questions", random_state=0)
    model = OrdinalEmbedding(2, loss=loss, random_state=0).fit(train, choices="joint")
    assert model.score(test) > 0.85
    model.save(tmp_path / "model")
    loaded = OrdinalEmbedding.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    for name in ("embedding_", "objects_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(model, name))
    np.testing.assert_array_equal(loaded.next_queries(5), model.next_queries(5))
    np.testing.assert_array_equal(loaded.comparisons_.events, train.events)
    assert loaded.partial_fit(test).score(test) > 0.85
    assert loaded.comparisons_.events is not None
    assert len(np.unique(loaded.comparisons_.events)) == 500
    assert model.bootstrap(2).shape == (2, 20, 2)
    model.embedding_ = model.embedding_[:3]  # `score` read outside the points of such a folder
    model.save(tmp_path / "few")
    with pytest.raises(ValueError, match=r"embedding has shape \(3, 2\); it must be \(20, 2\)"):
        OrdinalEmbedding.load(tmp_path / "few")


def test_separate_choices_are_the_comparisons_that_they_imply():
    answers = planted(count=200)
    with_events = OrdinalEmbedding(2, random_state=0).fit(answers, choices="separate")
    without = OrdinalEmbedding(2, random_state=0).fit(replace(answers, events=None))
    np.testing.assert_array_equal(with_events.embedding_, without.embedding_)


def test_an_answer_is_never_split_between_learning_and_judging():
    """Rows of one odd-one-out answer were on both sides of a split by questions."""
    answers = planted(count=300)
    train, test = split_comparisons(answers, 0.3, by="questions", random_state=0)
    assert not set(train.events.tolist()) & set(test.events.tolist())
    again = comparisons_from_array([[0, 1, 2], [1, 0, 2], [2, 0, 1], [3, 4, 5]], form="odd-one-out")
    assert number_judgements(again)[:, 0].tolist() == [0, 0, 0, 0, 0, 0, 1, 1]  # the same three, whoever is odd


@each(
    ("how", "joint"),
    [
        ({"loss": "ste"}, True),
        ({"loss": "t-ste"}, False),
        ({"loss": "ste", "solver": "svrg-sbb"}, False),
        ({"loss": "soe"}, False),
    ],
)
def test_auto_takes_choices_as_events_for_ste_alone(how, joint):
    model = OrdinalEmbedding(2, random_state=0, **how).fit(planted(count=100))
    assert (model.comparisons_.events is not None) == joint


def joint(answers, **how):
    return OrdinalEmbedding(2, **how).fit(answers, choices="joint")


def test_errors():
    row, answers = np.array([[0, 1, 2]]), planted(count=50)
    each_refused([
        (lambda: joint(answers, solver="svrg-sbb"), ValueError, "use 'auto' or 'l-bfgs'"),
        (lambda: joint(answers, loss="gnmds"), ValueError, "it needs comparisons with events"),
        (lambda: joint(row), ValueError, "choices is 'joint'; it needs comparisons with events"),
        (lambda: Comparisons([[0, 1, 2], [0, 2, 1]], np.arange(3), events=[5, 5]), ValueError, "are event 5"),
        (lambda: Comparisons(row, np.arange(3), events=[0.5]), TypeError, "events has dtype float64"),
        (lambda: EventObjective(row, 3, get_loss("soe", 2), [0]), ValueError, "loss='soe' has no probability"),
    ])  # fmt: skip
