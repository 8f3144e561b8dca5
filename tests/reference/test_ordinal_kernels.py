"""The kernels' passes against slow twins: every row and every term in plain NumPy, dense updates and all."""

import numpy as np

from nearkin.embedding.ordinal.losses import LOSSES, get_loss
from nearkin.embedding.ordinal.objective import OrdinalObjective, pad_rows, unpad_rows
from nearkin.solvers import Plain, RowScaled, VarianceReduced
from tests.covering import covering, each

N, P = 7, 5


def questions(width, m=41):
    rng = np.random.default_rng(3)
    rows = np.array([rng.permutation(N)[:width] for _ in range(m)])
    if width == 4:
        rows[::5, 2] = rows[::5, 1]  # quadruplets whose pairs share an object
    return rows.astype(np.uint32)


def term_gradient(X, row, weight, loss):
    """The gradient of one weighted term, from the kernel that the central differences prove."""
    problem = OrdinalObjective(row[None], len(X), loss, dtype=np.float64)
    return weight * unpad_rows(problem.gradient(pad_rows(X, np.float64)), X.shape[1]) / len(X)


@each(
    ("batch_size", "name", "width", "draws"), covering([1, 4, 100], ["gnmds", "t-ste"], [3, 4], ["cyclic", "uniform"])
)
def test_lazy_svrg_equals_the_dense_form(batch_size, name, width, draws):
    rng = np.random.default_rng(1)
    rows, weights = questions(width), rng.uniform(0.5, 2, 41)
    loss, step = get_loss(name, P), 2e-3
    problem = OrdinalObjective(rows, N, loss, weights, dtype=np.float64)
    X0 = rng.normal(0, 0.5, (N, P))
    snapshot = problem.snapshot(pad_rows(X0, np.float64))
    x = pad_rows(X0 + rng.normal(0, 0.1, (N, P)), np.float64)
    X = unpad_rows(x, P).copy()
    order = np.arange(60) % 41  # the second pass goes on where the first one stopped
    if draws == "uniform":
        order = rng.integers(41, size=60)
    for half in (order[:30], order[30:]):
        drawn = half if draws == "uniform" else None
        problem.walk(x, VarianceReduced(step, snapshot, batch_size, 30, drawn))
    g, w = unpad_rows(snapshot.gradient, P), N * weights / weights.mean()
    for half in (order[:30], order[30:]):
        for batch in (half[first : first + batch_size] for first in range(0, 30, batch_size)):
            noise = sum(term_gradient(X, rows[q], w[q], loss) - term_gradient(X0, rows[q], w[q], loss) for q in batch)
            X = X - step * (noise + len(batch) * g)
    np.testing.assert_allclose(unpad_rows(x, P), X, rtol=0, atol=1e-14 * np.abs(X).max() * 60)


@each("width", [3, 4])
@each("name", LOSSES)
def test_sgd_and_adagrad_passes(name, width):
    rng = np.random.default_rng(2)
    rows, weights = questions(width)[:12], rng.uniform(0.5, 2, 12)
    loss = get_loss(name, P)
    problem = OrdinalObjective(rows, N, loss, weights, dtype=np.float64)
    w = weights / weights.mean()
    x = pad_rows(rng.normal(0, 0.5, (N, P)), np.float64)
    X = unpad_rows(x, P).copy()
    drawn = rng.integers(12, size=9)
    problem.walk(x, Plain(1e-3))
    problem.walk(x, Plain(1e-3, drawn))
    for q in [*range(12), *drawn]:
        X = X - 1e-3 * term_gradient(X, rows[q], N * w[q], loss)
    np.testing.assert_allclose(unpad_rows(x, P), X, atol=1e-13)
    if width == 4:
        keep = [len(set(row.tolist())) == 4 for row in rows]  # a shared object is stepped once per pair, not once
        rows, weights = rows[keep], weights[keep]
        problem, w = OrdinalObjective(rows, N, loss, weights, dtype=np.float64), weights / weights.mean()
    accumulator, sums = np.full(N, 1e-8), np.full(N, 1e-8)
    problem.walk(x, RowScaled(0.1, accumulator))
    for q, row in enumerate(rows):
        g = term_gradient(X, row, w[q], loss)
        sums += (g**2).sum(axis=1)
        X = X - 0.1 * g / np.sqrt(sums)[:, None]
    np.testing.assert_allclose(unpad_rows(x, P), X, atol=1e-9)
    np.testing.assert_allclose(accumulator, sums, rtol=1e-6)


def test_padding_stays_zero_and_float32_follows_float64():
    rows = questions(3)
    X = np.random.default_rng(4).normal(0, 0.5, (N, P))
    points = {}
    for dtype in (np.float32, np.float64):
        problem = OrdinalObjective(rows, N, get_loss("t-ste", P), dtype=dtype)
        x = pad_rows(X, dtype)
        for _ in range(3):
            problem.walk(x, VarianceReduced(0.01, problem.snapshot(x), batch_size=2, n_terms=41))
            problem.walk(x, RowScaled(0.1, np.full(N, 1.0, dtype)))
        assert (x.reshape(N, -1)[:, P:] == 0).all()
        points[dtype] = unpad_rows(x, P)
    np.testing.assert_allclose(points[np.float32], points[np.float64], atol=1e-5)
