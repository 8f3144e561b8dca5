"""What every solver promises: the same optimum, its input unchanged, the same result for the same seed, a report."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import nearkin as nk
from nearkin.contracts import Run
from nearkin.data.comparisons.forms import orient
from nearkin.data.comparisons.votes import comparisons_from_vectors
from nearkin.embedding.ordinal.objective import SOLVERS
from nearkin.records import invalid_rows, nearer
from nearkin.solvers import LBFGS, SGD, SVRG, AdaGrad, GradientDescent
from tests.covering import each
from tests.solvers.problems import least_squares

ON_SUMS = {
    "svrg-sbb": SVRG(),
    "svrg-sbb b=7": SVRG(batch_size=7),
    "svrg-sbb0": SVRG(epsilon=0.0),
    "svrg geometric": SVRG(step="geometric"),
    "svrg-sbb-modular": SVRG(restart=4),
    "svrg": SVRG(step=0.3),
    "sgd": SGD(),
    "adagrad": AdaGrad(),
    "gd": GradientDescent(),
    "gd fixed": GradientDescent(step=0.3),
    "l-bfgs": LBFGS(),
}


@each("name", ON_SUMS)
def test_reaches_the_minimum_of_a_convex_sum(name):
    problem = least_squares()  # consistent equations: SGD's noise vanishes at the minimum
    solution = ON_SUMS[name].minimize(problem, np.zeros((4, 1)), Run(200, tol=1e-9))
    far = np.linalg.norm(solution.x - problem.minimum) / np.linalg.norm(problem.minimum)
    assert far < 1e-3, f"{name}: {far:.1e} from the minimum after {solution.n_epochs} epochs ({solution.status})"


@each("name", ON_SUMS)
def test_leaves_the_start_alone_and_reports_each_epoch_which_changes_nothing(name):
    start, seen, run = np.ones((4, 1)), [], Run(30, tol=1e-4)
    alone = ON_SUMS[name].minimize(least_squares(noise=0.3), start, run)
    watch = replace(run, callback=lambda *step: seen.append(step))
    watched = ON_SUMS[name].minimize(least_squares(noise=0.3), start, watch)
    assert (start == 1).all()
    np.testing.assert_array_equal(alone.x, watched.x)
    assert alone.n_epochs == watched.n_epochs
    assert [step for step, _ in seen] == list(range(1, watched.n_epochs + 1))
    assert all(record["total"] == 30 for _, record in seen)
    assert seen[-1][1]["objective"] < least_squares(noise=0.3).value(start)
    reported = [(step, record["objective"]) for step, record in seen]
    assert [(entry["step"], entry["objective"]) for entry in watched.history] == reported


@pytest.fixture(scope="module")
def answers():
    points = np.random.default_rng(11).normal(size=(30, 2))
    return comparisons_from_vectors(points, 3000, random_state=12), comparisons_from_vectors(
        points, 3000, random_state=13
    )


@pytest.mark.parametrize("solver", [*SOLVERS, SVRG(restart=10)], ids=str)
def test_embeds_and_repeats_itself(solver, answers):
    train, test = answers
    options = {"solver": solver, "random_state": 3, "max_iter": 40}
    model = nk.OrdinalEmbedding(2, **options).fit(train)
    again = nk.OrdinalEmbedding(2, **options).fit(train)
    assert model.score(test) > 0.88, f"{solver}: {1 - model.score(test):.3f} of held-out answers wrong"
    np.testing.assert_array_equal(model.embedding_, again.embedding_)
    other = nk.OrdinalEmbedding(2, **{**options, "random_state": 4, "max_iter": 2}).fit(train)
    assert not np.array_equal(model.embedding_, other.embedding_)


@each("solver", sorted(set(SOLVERS) - {"auto"}))
def test_the_objective_is_the_mean_loss_of_a_comparison(solver):
    """It was the sum for each object: of points that are hardly apart n log 2."""
    for n in (8, 16):
        answers = comparisons_from_vectors(np.random.default_rng(0).normal(size=(n, 2)), 300, random_state=1)
        seen = []
        model = nk.OrdinalEmbedding(2, loss="ste", solver=solver, n_init=1, max_iter=3, random_state=0)
        model.fit(answers, callback=lambda step, record, seen=seen: seen.append(record["objective"]))
        rows, X = answers.indices, model.embedding_.astype(float)
        near, far = (((X[rows[:, 0]] - X[rows[:, side]]) ** 2).sum(axis=1) for side in (1, 2))
        assert model.objective_ == pytest.approx(np.logaddexp(0, near - far).mean(), rel=1e-4)
        assert [record["objective"] for record in model.history_] == seen
        assert seen[-1] == pytest.approx(model.objective_, rel=1e-6)


@each("solver", sorted(SOLVERS))
def test_pairs_of_quadruplets_have_no_order(solver):
    """AdaGrad took an object of both pairs for two, unless it was the first of both."""
    rng = np.random.default_rng(0)
    points, rows = rng.normal(size=(10, 2)), rng.integers(0, 10, (800, 4))
    rows = rows[~invalid_rows(rows)]
    rows = orient(rows, nearer(points, rows))
    turned = rows.copy()
    for pair in ([0, 1], [2, 3]):
        some = rng.random(len(rows)) < 0.5
        turned[np.ix_(some, pair)] = rows[np.ix_(some, pair[::-1])]
    model = nk.OrdinalEmbedding(2, solver=solver, n_init=1, max_iter=5, random_state=0)
    one, other = (clone(model).fit(answers).embedding_ for answers in (rows, turned))
    np.testing.assert_allclose(one, other, atol=1e-4)
