"""What every solver promises: the same optimum, its input unchanged, the same result for the same seed, a report."""

from dataclasses import replace

import numpy as np
import pytest

import nearkin as nk
from nearkin.contracts import Run
from nearkin.data.comparisons.votes import comparisons_from_vectors
from nearkin.embedding.ordinal.objective import SOLVERS
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
