"""The habits of scikit-learn's world, tried on every estimator that takes matrices."""

import itertools
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import nearkin as nk
from nearkin.quantization import AxisQuantizer, ProductResidualQuantizer, ResidualQuantizer, ScalarQuantizer
from tests.covering import each

pytestmark = pytest.mark.usefixtures("few_rounds")

FEW = {"max_iter": 2, "random_state": 0}
MATRICES = {  # for grid searches, and to be known by the names of columns
    "product": nk.ProductQuantizer(2, 4, **FEW),
    "lists": nk.ProductQuantizer(2, 4, n_lists=2, **FEW),
    "residual": ResidualQuantizer(2, 4, **FEW),
    "product residual": ProductResidualQuantizer(2, 1, n_centroids=4, **FEW),
    "scalar": ScalarQuantizer(4),
    "axis": AxisQuantizer(2),
    "rotation": nk.Rotation("sign", **FEW),
}
SMALL = [
    nk.ProductQuantizer(1, 2, n_lists=2, max_iter=2),
    ResidualQuantizer(1, 2, max_iter=2),
    ProductResidualQuantizer(1, 1, n_centroids=2, max_iter=2),
    ScalarQuantizer(8),
    AxisQuantizer(1),
    nk.Bridge(random_state=0),
    nk.Rotation("int8", max_iter=2),
    *(kind(2, max_iter=3) for kind in (nk.ITQ, nk.OnE, nk.OgE)),
    *(kind(2) for kind in (nk.Signs, nk.PCAHash, nk.RandomHyperplanes)),
]


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    return (rng.normal(size=(120, 6)) @ rng.normal(size=(6, 6))).astype(np.float32)


@pytest.mark.parametrize("model", SMALL, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore:the covariance of X is isotropic")
def test_scikit_learn_rules(model: object) -> None:
    with np.errstate(all="ignore"):
        check_estimator(model, on_skip=None)


@each("name", ["fit2d_1sample", "fit2d_predict1d", "estimators_dtypes"])
def test_ids_keep_scikit_learns_rules(name: str) -> None:
    """All 47 pass, in five seconds; these looked at what is its own."""
    checks = estimator_checks_generator(nk.SemanticIds(4, 4, random_state=0))
    (found,) = [(model, check) for model, check in checks if check.func.__name__ == f"check_{name}"]
    found[1](found[0])


PUBLIC = {  # every class that takes matrices with or without column names
    **{type(model).__name__: model for model in MATRICES.values()},
    **{name: getattr(nk, name)(3) for name in ("ITQ", "OnE", "OgE", "Signs", "PCAHash", "RandomHyperplanes")},
    "ResidualQuantizer": ResidualQuantizer(2, 16, n_lists=2, max_iter=1, random_state=0),
    "SemanticIds": nk.SemanticIds(2, 32, random_state=0),
    "Bridge": nk.Bridge(random_state=0),
}
ROW_METHODS = ("project", "encode", "quantization_error", "retained_variance", "distortion", "faiss_codes", "assign")


def test_no_public_class_is_left_out() -> None:
    rooms = (nk, nk.hashing, nk.quantization)
    found = {name for room in rooms for name in dir(room) if hasattr(getattr(room, name), "transform")}
    assert found == {*PUBLIC}


@pytest.mark.parametrize(("name", "library"), [*zip(PUBLIC, itertools.cycle(["pandas", "polars"]), strict=False)])
@pytest.mark.filterwarnings("error")
def test_named_columns_go_everywhere(name: str, library: str, X: np.ndarray, tmp_path: Path) -> None:
    """Before, 15 classes warned of names that their own methods had dropped."""
    make = pytest.importorskip(library).DataFrame
    frame, names = make({f"column {j}": X[:, j] for j in range(6)}), [f"{name.lower()}{j}" for j in range(99)]
    model = PUBLIC[name].set_params(random_state=0) if hasattr(PUBLIC[name], "random_state") else PUBLIC[name]
    y = X[:, :5] if name == "Bridge" else None
    plain = clone(model).fit(X, y)
    fitted = clone(model).set_output(transform=library).fit(frame, y)
    found = fitted.transform(frame)
    assert isinstance(found, make)
    assert list(found.columns) == fitted.get_feature_names_out().tolist() == names[: found.shape[1]]
    np.testing.assert_array_equal(found.to_numpy(), plain.transform(X))
    named = clone(model).fit(frame, y)
    for method in ROW_METHODS:
        if hasattr(model, method):
            expected = getattr(plain, method)(X)
            for rows in (frame, X):  # a copy, because `assign` keeps what it gave away
                np.testing.assert_array_equal(getattr(deepcopy(named), method)(rows), expected)
    for method in ("decode", "inverse_transform"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(fitted, method)(found), getattr(plain, method)(plain.transform(X)))
    if name not in ("Rotation", "SemanticIds", "Bridge"):
        metric = "hamming" if hasattr(model, "project") else "l2"
        ids = [
            nk.Index.build(rows, made, metric=metric).search(rows, 3)[1] for made, rows in ((plain, X), (fitted, frame))
        ]
        np.testing.assert_array_equal(*ids)
    if hasattr(model, "partial_fit"):
        fitted.partial_fit(frame)
    fitted.save(tmp_path / "saved")
    np.testing.assert_array_equal(type(model).load(tmp_path / "saved").transform(frame), fitted.transform(frame))
    columns = ColumnTransformer([("codes", clone(model), list(frame.columns))])
    chain = make_pipeline(StandardScaler(), columns).set_output(transform=library).fit(frame, y)
    assert list(chain.transform(frame).columns) == [f"codes__{word}" for word in names[: found.shape[1]]]
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(make({f"column {j + 1}": X[:, j] for j in range(6)}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.transform(X)


@pytest.mark.filterwarnings("error")
def test_quantizers_that_are_chosen_know_the_columns_of_a_frame(X: np.ndarray) -> None:
    """They were fitted to the values alone: each row of names brought a warning, and their order was not compared."""
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(6)])
    given = nk.ProductQuantizer(2, 4, random_state=0).fit(X)
    assert not hasattr(nk.Index.build(frame, given).quantizer, "feature_names_in_")
    for made in (
        nk.quantization.best(frame, 2, methods=["axes"], random_state=0).quantizer,
        nk.Index.build(frame, nk.ProductQuantizer(2, 4, random_state=0)).quantizer,
    ):
        np.testing.assert_array_equal(made.encode(frame), made.encode(X))
        with pytest.raises(ValueError, match="feature names"):
            made.encode(frame[frame.columns[::-1]])


@each("name", PUBLIC)
def test_seeds_of_numpy_are_taken_and_times_are_no_numbers(name: str, X: np.ndarray) -> None:
    """Before, a bridge refused all three, and every class took nanoseconds for coordinates."""
    model, y = clone(PUBLIC[name]), X[:, :5] if name == "Bridge" else None
    for seed in (np.int64(0), np.random.default_rng(0), np.random.RandomState(0)):
        if hasattr(model, "random_state"):
            model.set_params(random_state=seed).fit(X, y)
    times = X.astype("datetime64[s]")
    for given in (times, times - times[0], pd.DataFrame(X).assign(at=times[:, 0])):
        with pytest.raises(TypeError, match=r"must be numeric|1 column without coordinates"):
            model.fit(given, y)


def test_a_grid_search_over_comparisons(rng: np.random.Generator) -> None:
    """Dimensions by cross-validation: answers of a plane are explained better by two than by one."""
    points = rng.normal(size=(12, 2))
    rows = np.array([rng.permutation(12)[:3] for _ in range(400)])
    near, far = (np.linalg.norm(points[rows[:, 0]] - points[rows[:, j]], axis=1) for j in (1, 2))
    rows[near > far] = rows[near > far][:, [0, 2, 1]]
    search = GridSearchCV(nk.OrdinalEmbedding(random_state=0), {"n_components": [1, 2]}, cv=2).fit(rows)
    assert search.best_params_ == {"n_components": 2}
    assert search.best_estimator_.embedding_.shape == (12, 2)


def test_towers_are_cloned_with_what_was_set() -> None:
    model = nk.TwoTower(8, loss=nk.embedding.AllPairs(omega=0.5), random_state=3)
    again = clone(model.set_params(loss__omega=0.25))
    assert (again.n_components, again.loss.omega, again.random_state) == (8, 0.25, 3)
    assert again.loss is not model.loss
