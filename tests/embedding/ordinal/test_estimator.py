"""The estimator: quality on known answers, names, bad input, new objects, new answers, next questions."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import nearkin as nk
from nearkin.data.comparisons import comparisons_from_array, comparisons_from_names
from nearkin.data.comparisons.votes import comparisons_from_vectors, net_votes, triplets_of
from nearkin.embedding.ordinal.losses import LOSSES
from nearkin.embedding.ordinal.objective import SOLVERS
from nearkin.records import Comparisons
from tests.covering import each


@pytest.fixture(scope="module")
def points():
    return np.random.default_rng(21).normal(size=(40, 2))


@pytest.fixture(scope="module")
def train(points):
    return comparisons_from_vectors(points, 5000, random_state=22)


@pytest.fixture(scope="module")
def test(points):
    return comparisons_from_vectors(points, 5000, random_state=23)


@pytest.fixture(scope="module")
def model(train):
    return nk.OrdinalEmbedding(2, random_state=0).fit(train)


@pytest.mark.parametrize("loss", LOSSES)
def test_held_out_answers(loss, train, test):
    model = nk.OrdinalEmbedding(2, loss=loss, random_state=0).fit(train)
    bound = 0.92 if loss in ("ckl", "t-ste") else 0.97  # heavy tails have a floor of their own
    assert model.score(test) > bound, f"{loss}: {model.score(test):.3f}"
    assert model.embedding_.shape == (40, 2)
    assert model.embedding_.dtype == np.float32


def test_embedding_is_the_shape_that_asked_the_questions_centred_in_principal_axes(points, model):
    """Procrustes: after turning and scaling, the points lie where the true ones do."""
    from scipy.spatial import procrustes

    _, _, left = procrustes(points, model.embedding_)
    assert left < 0.02, left
    X = model.embedding_.astype(float)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-5)
    spread = X.T @ X
    assert spread[0, 0] >= spread[1, 1]
    assert abs(spread[0, 1]) < 1e-3 * spread[0, 0]
    assert model.history_[-1]["step"] == model.n_iter_
    assert model.history_[0]["step"] >= 1
    assert model.history_[-1]["objective"] == pytest.approx(model.objective_)


def test_votes_outweigh(train, test):
    """Answers turned round with one vote each do no harm beside the right ones with nine."""
    rows = np.concatenate([train.indices, train.indices[:, [0, 2, 1]]])
    weights = np.repeat([9.0, 1.0], len(train))
    fair = nk.OrdinalEmbedding(2, random_state=0).fit(Comparisons(rows, train.objects, weights))
    assert fair.score(test) > 0.93


def test_names_are_matched(points):
    names = np.array([f"city {n}" for n in range(40)])
    answers = comparisons_from_vectors(points, 4000, random_state=22)
    model = nk.OrdinalEmbedding(2, random_state=0).fit(comparisons_from_names(names[answers.indices]))
    shuffled = comparisons_from_names(names[::-1][answers.indices[:50]], objects=names[::-1])
    straight = comparisons_from_names(names[::-1][answers.indices[:50]])
    assert model.score(shuffled) == model.score(straight)
    assert model.objects_.tolist() == sorted(names.tolist())
    with pytest.raises(ValueError, match="1 id that the embedding lacks, the first is 'Rome'"):
        model.score(comparisons_from_names([["Rome", "city 1", "city 2"]]))


def test_an_array_without_names_indexes_the_objects_in_every_method():
    """Names with accents; `score` took 0 as a name, and `partial_fit` added objects called "0", "1" and "2"."""
    names = np.array(["Žižkov", "Ñandú", "été", "東京"])
    model = nk.OrdinalEmbedding(1, random_state=0).fit(comparisons_from_names(names[[[0, 1, 2], [1, 0, 3], [2, 3, 0]]]))
    rows = model.comparisons_.indices
    assert model.score(rows) == model.score(rows[:, [0, 2, 1]], [-1] * 3) == model.predict(rows).mean() == 1
    assert model.partial_fit(rows, [True] * 3).objects_.tolist() == sorted(names)
    for method in (model.score, model.predict, model.partial_fit):
        with pytest.raises(ValueError, match="has the index 9; the embedding has 4 objects, 0"):
            method([[0, 1, 9]])
        with pytest.raises(TypeError, match=r"pass nk.read_comparisons\('answers.csv'\)"):
            method("answers.csv")
    numbered = nk.OrdinalEmbedding(1, random_state=0).fit(comparisons_from_names(rows.astype(int) + 1))
    with pytest.raises(ValueError, match="the objects are numbers such as 1, not 0, 1"):
        numbered.score(rows[:, [0, 2, 1]])
    with pytest.raises(TypeError, match="use one type"):
        numbered.partial_fit(model.comparisons_)


def test_no_score_without_a_fit_which_the_mean_of_predict_is(model, train, test):
    assert model.predict(test).mean() == pytest.approx(model.score(test))
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.score(train)


def test_partial_fit_learns_and_keeps_what_it_knew(points, train, test):
    half, more = train.take(slice(0, 300)), train.take(slice(300, None))
    model = nk.OrdinalEmbedding(2, random_state=0).fit(half)
    before = model.score(test)
    model.partial_fit(more)
    assert len(model.comparisons_) == len(train)
    assert model.score(test) > max(before, 0.95)
    fresh = comparisons_from_array([[40, 0, 1], [0, 40, 1], [3, 2, 40], [40, 2, 3]])
    model.partial_fit(fresh)
    assert model.embedding_.shape == (41, 2)
    assert model.score(test) > 0.95
    assert model.score(fresh) == 1.0


def test_dimension_is_found(train):
    model = nk.OrdinalEmbedding("auto", random_state=0).fit(train)
    assert model.n_components_ == 2, model.dimension_curve_
    assert model.dimension_curve_["dimension"][:3] == [1, 2, 3]
    errors, spread = model.dimension_curve_["error"], model.dimension_curve_["standard_error"]
    assert errors[0] > 0.15
    assert spread[int(np.argmin(errors))] == 0  # it is that of the difference from the best, paired by question
    assert 0 < max(spread) < 0.1


@each(("as_said", "quadruplets"), [("bool", False), ("list", True), ("int8", False), ("float", True)])
def test_responses_are_used_as_cblearn_does(points, test, quadruplets, as_said):
    """`fit(triplets, responses)` used to ignore the responses: an accuracy of .468 where .998 was to be had."""
    true = comparisons_from_vectors(points, 3000, quadruplets=quadruplets, random_state=22)
    good = np.random.default_rng(1).random(len(true)) < 0.5
    turned = true.indices[:, [2, 3, 0, 1] if quadruplets else [0, 2, 1]]
    rows = np.where(good[:, None], true.indices, turned)
    y = {"bool": good, "list": good.tolist(), "int8": np.where(good, 1, -1).astype(np.int8), "float": good * 2.0 - 1}
    model = nk.OrdinalEmbedding(2, loss="ste", random_state=0).fit(rows, y[as_said])
    assert model.score(test) > 0.95
    assert model.score(rows, y[as_said]) == pytest.approx(model.score(true))
    more = nk.OrdinalEmbedding(2, random_state=0).fit(rows[:500], good[:500]).partial_fit(rows[500:], good[500:])
    np.testing.assert_array_equal(more.comparisons_.indices, true.indices)


@each(
    ("y", "text"),
    [
        ([0, 1, 1], "y holds 0, 1; it must hold True and False, or 1 and -1"),
        ([1, -1, 2], "y holds 1, -1, 2"),
        ([1.0, np.nan, 1.0], "y holds 1.0, nan"),
        (["yes", "no", "yes"], "y holds 'yes', 'no'"),
        ([True, False], r"y has shape \(2,\); it must be \(3,\)"),
    ],
)
def test_other_responses_are_refused(y, text):
    rows = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    for call in (nk.OrdinalEmbedding(2).fit, nk.OrdinalEmbedding(2, random_state=0).fit(rows).score):
        with pytest.raises(ValueError, match=text):
            call(rows, y)


def hostile(rows, n_objects=5):
    """A `Comparisons` changed after its checks."""
    answers = comparisons_from_array([[0, 1, 2]] * len(rows), objects=np.arange(n_objects))
    answers.indices[:] = rows
    return answers


@each("solver", SOLVERS)
def test_kernels_never_read_outside(solver, model):
    """The compiled passes do not check indices: a comparison changed by hand read and wrote outside the points."""
    for row in ([0, 1, 5], [0, 1, 10**7], [2**32 - 1, 1, 2]):
        with pytest.raises(ValueError, match=r"comparisons row 0 is .*; there are only 5 objects"):
            nk.OrdinalEmbedding(2, solver=solver, random_state=0).fit(hostile([row]))
    with pytest.raises(ValueError, match="index in comparisons is 10000000"):
        model.score(hostile([[0, 1, 10**7]], 40))


@each("solver", ["auto", "svrg-sbb"])
@each(("n_init", "max_iter", "total"), [(1, 12, 12), (2, 5, 10), (2, 12, 22)])
def test_callback_and_starts(train, solver, n_init, max_iter, total):
    """Every start has at most ten epochs, the best one `max_iter`; all are counted through."""
    seen = []
    model = nk.OrdinalEmbedding(2, solver=solver, random_state=0, n_init=n_init, max_iter=max_iter, tol=0.0)
    model.fit(train, callback=lambda step, record: seen.append((step, record["total"], record["embedding"].shape)))
    assert seen == [(step, total, (40, 2)) for step in range(1, total + 1)]
    assert [record["step"] for record in model.history_] == list(range(1, max_iter + 1))
    assert (model.n_iter_, model.status_) == (max_iter, "max_epochs")


@each(("form", "width"), [("triplet", 3), ("ranking", 5)])
@each("rule", ["information-gain", "random"])
@each("loss", ["t-ste", "gnmds"])
def test_next_queries_are_new_and_open(form, width, rule, loss, points):
    few = comparisons_from_vectors(points, 200, random_state=8)
    model = nk.OrdinalEmbedding(2, loss=loss, random_state=0).fit(few)
    asked = model.next_queries(100, form=form, rule=rule)
    assert asked.shape == (100, width), "more questions than the 40 objects"
    questions = {
        frozenset((i, frozenset(pair)) for pair in itertools.combinations(rest, 2)) for i, *rest in asked.tolist()
    }
    assert len(questions) == 100, "none twice"
    assert not any(question <= {(i, frozenset((j, k))) for i, j, k in few.indices.tolist()} for question in questions)
    assert all(len({*row}) == width for row in asked.tolist())
    again = clone(model).fit(few).next_queries(100, form=form, rule=rule)
    np.testing.assert_array_equal(asked, again)
    with pytest.raises(ValueError, match="k is 0"):
        model.next_queries(0, rule=rule)


@pytest.mark.parametrize(("form", "flipped", "k"), [("triplet", 0.0, 50), ("triplet", 0.2, 100), ("ranking", 0.0, 10)])
def test_chosen_questions_teach_more_than_random_ones(form, flipped, k, points, test):
    """The point of asking: after as many more answers, the error is lower than with random questions."""
    errors = {"information-gain": [], "random": []}
    for rule, seed in itertools.product(errors, range(2)):
        rng = np.random.default_rng(seed)
        model = nk.OrdinalEmbedding(2, loss="ste", random_state=seed)
        model.fit(comparisons_from_vectors(points, 300, noise=flipped, random_state=100 + seed))
        for _ in range(6):
            rows = model.next_queries(k, form=form, rule=rule)
            far = np.linalg.norm(points[rows[:, :1]] - points[rows[:, 1:]], axis=2)
            ranked = np.take_along_axis(rows[:, 1:], far.argsort(axis=1), axis=1)
            rows = triplets_of(np.hstack([rows[:, :1], ranked]))
            model.partial_fit(rows, rng.random(len(rows)) >= flipped)
        errors[rule].append(1 - model.score(test))
    assert np.mean(errors["information-gain"]) < 0.9 * np.mean(errors["random"]), errors


def test_auto_finds_the_loss_that_suits_wrong_answers(tmp_path):
    """A tenth of wrong answers costs STE twice the error of its form with random answers; clean ones cost nothing."""
    points = np.random.default_rng(3).normal(0, 1, (40, 2))
    test = comparisons_from_vectors(points, 5000, random_state=4)
    errors = {}
    for noise in (0.0, 0.1):
        answers = comparisons_from_vectors(points, 3000, noise=noise, random_state=5)
        for loss in ("ste", "auto"):
            model = nk.OrdinalEmbedding(2, loss=loss, random_state=0).fit(answers)
            errors[noise, loss] = 1 - model.score(test)
    assert errors[0.1, "auto"] < 0.75 * errors[0.1, "ste"], errors
    assert errors[0.0, "auto"] < errors[0.0, "ste"] + 0.01, errors
    assert (model.loss, model.loss_, model.loss_parameter_) == ("auto", "ste", 0.1)
    model.save(tmp_path / "map")
    again = nk.OrdinalEmbedding.load(tmp_path / "map")
    assert (again.loss, again.loss_, again.loss_parameter_) == ("auto", "ste", 0.1)
    with pytest.raises(ValueError, match="loss_parameter"):
        nk.OrdinalEmbedding(2, loss_parameter=0.1).fit(answers)


def test_bootstrap_lies_around_the_embedding(points, train):
    """Its clouds are wider where fewer answers are, and it is the same for the same seed."""
    few, many = (nk.OrdinalEmbedding(2, random_state=0).fit(train.take(slice(0, m))) for m in (600, 4000))
    draws = {name: model.bootstrap(10) for name, model in (("few", few), ("many", many))}
    assert draws["few"].shape == (10, 40, 2)
    np.testing.assert_array_equal(draws["few"], few.bootstrap(10))

    def spread(model, clouds):
        return np.sqrt(clouds.var(axis=0).sum() / (model.embedding_**2).sum())

    assert spread(many, draws["many"]) < 0.6 * spread(few, draws["few"]) < 0.6
    assert np.abs(draws["many"].mean(axis=0) - many.embedding_).mean() < 0.2 * np.abs(many.embedding_).mean()


def test_validation_returns_the_best_seen_and_may_be_a_share_of_the_questions(points, test):
    few = comparisons_from_vectors(points, 250, noise=0.15, random_state=8)
    plain = nk.OrdinalEmbedding(10, random_state=0).fit(few)
    careful = nk.OrdinalEmbedding(10, random_state=0).fit(few, validation=test)
    assert careful.score(test) >= plain.score(test)
    assert min(entry["validation"] for entry in careful.history_) >= 1 - careful.score(test) - 1e-3
    noisy = comparisons_from_vectors(points, 400, noise=0.15, random_state=8)
    model = nk.OrdinalEmbedding(10, random_state=0).fit(noisy, validation=0.25)
    assert 295 <= len(model.comparisons_) <= 305  # a question may come twice
    assert "validation" in model.history_[-1]


def test_report_names_what_is_missing():
    groups = np.array([[0, 1, 2], [1, 2, 0], [3, 4, 5], [4, 5, 3]])
    answers = Comparisons(np.concatenate([groups, [[0, 2, 1]]]), np.array(list("abcdefg")))
    model = nk.OrdinalEmbedding(2, random_state=0).fit(answers)
    report = model.report()
    assert report["n_groups"] == 2
    assert report["unplaced"].tolist() == ["g"]
    assert report["n_contradictions"] == 1
    assert set(report["few"]) == set("def")
    assert any("2 groups" in note for note in report["notes"])
    np.testing.assert_array_equal(model.embedding_[6], [0, 0])


@each(
    ("answers", "text"),
    [
        (np.array([[0, 1, 2], [0, 2, 1]]), "they cancel out"),
        (np.array([[0, 1, 1]]), "repeat an index"),
        (np.empty((0, 3), int), "is empty"),
        (Comparisons(np.empty((0, 3), np.uint32), np.arange(5)), "comparisons is empty"),
        (Comparisons(np.empty((0, 3), np.uint32), np.arange(1)), "1 object; at least 3 are needed"),
        (Comparisons(np.empty((0, 3), np.uint32), np.arange(2)), "2 objects; at least 3 are needed"),
    ],
)
def test_useless_answers(answers, text):
    with pytest.raises(ValueError, match=text):
        nk.OrdinalEmbedding(2, random_state=0).fit(answers)
    assert "cancel" not in text or not net_votes(comparisons_from_array(answers))[0].any()


@each(
    ("options", "error", "text"),
    [
        ({"n_components": 0}, ValueError, "n_components is 0"),
        ({"n_components": "all"}, TypeError, "n_components is 'all'"),
        ({"loss": "hinge"}, ValueError, "loss is 'hinge'"),
        ({"solver": "adam"}, ValueError, "solver is 'adam'"),
        ({"solver": 3}, ValueError, "solver is 3; it must be one of"),
        ({"n_init": 0}, ValueError, "n_init is 0"),
        ({"scale": 0.0}, ValueError, "scale is 0.0"),
    ],
)
def test_bad_parameters(options, error, text, train):
    with pytest.raises(error, match=text):
        nk.OrdinalEmbedding(**options).fit(train)


@each("loss", LOSSES)
@each("solver", ["auto", "svrg-sbb", "svrg", "sgd", "adagrad", "gd", "l-bfgs"])
def test_two_answers_are_enough_to_stay_finite(solver, loss):
    for rows in ([[0, 1, 2]], [[0, 1, 2, 3], [2, 3, 1, 2]]):
        model = nk.OrdinalEmbedding(2, loss=loss, solver=solver, n_init=1, random_state=0).fit(rows)
        assert np.isfinite(model.embedding_).all()


def test_divergence_is_an_error_that_says_what_to_do(train):
    with pytest.raises(FloatingPointError, match="use a smaller step, or solver='svrg-sbb'"):
        nk.OrdinalEmbedding(2, solver=nk.solvers.GradientDescent(step=1e20), random_state=0).fit(train)


def test_same_seed_as_the_data_is_not_the_truth(points):
    """The start is drawn from another stream than vectors drawn with the same seed and size."""
    same, still = np.random.default_rng(0).normal(0, 0.1, (40, 2)), nk.solvers.GradientDescent(step=1e-9)
    answers = comparisons_from_vectors(same, 2000, random_state=1)
    rough = nk.OrdinalEmbedding(2, random_state=0, max_iter=1, solver=still).fit(answers)
    assert rough.score(answers) < 0.8
