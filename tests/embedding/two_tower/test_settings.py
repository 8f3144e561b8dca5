"""The parameters of `TwoTower` as checked settings: what "auto" chooses, and what is refused."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from sklearn.base import clone
from torch import Tensor, nn

import nearkin as nk
from nearkin.embedding import (
    ALS,
    Adam,
    AllPairs,
    CosineSoftmax,
    InBatchSoftmax,
    Joint,
    SphereSweeps,
    Tower,
)
from nearkin.embedding.two_tower.fitting import check_settings
from nearkin.quantization import IndexingLayer
from tests.covering import each

FEATURED = nk.data.planted_interactions(40, 30, random_state=0).interactions
PLAIN = replace(FEATURED, left_features=None, right_features=None)


SOFTMAX = {"loss": "cosine-softmax"}


class Passing(nn.Module):
    """A trainable index without phases."""

    def forward(self, Q: Tensor) -> tuple[Tensor, Tensor]:
        return Q, Q.new_zeros(())


class HalfPhased(Passing):
    phase = "train"


def solver_of(loss: object = "all-pairs", solver: object = "auto", pairs: nk.Interactions = PLAIN, **options) -> object:
    model = nk.TwoTower(loss=loss, solver=solver, **options)
    return check_settings(model, pairs).solver


def test_auto_becomes_what_suits_the_towers_the_loss_and_the_index() -> None:
    assert isinstance(solver_of(), ALS)
    assert isinstance(solver_of(pairs=FEATURED), ALS)
    assert isinstance(solver_of(left=nn.Linear(16, 4), pairs=FEATURED), Adam)
    assert isinstance(solver_of(index=Passing()), Adam)
    assert isinstance(solver_of(index=IndexingLayer(8, 2, 16)), Joint)
    assert isinstance(solver_of(index=IndexingLayer(8, 2, 16, 4)), Adam), "coarse cells cannot be learned by blocks"
    assert isinstance(solver_of(index=IndexingLayer(8, 2, 16), pairs=FEATURED), Adam)
    assert isinstance(solver_of(InBatchSoftmax()), Adam)
    assert isinstance(solver_of(CosineSoftmax()), SphereSweeps)
    assert isinstance(solver_of(CosineSoftmax(), index=IndexingLayer(8, 2, 16)), Joint)
    assert isinstance(solver_of(CosineSoftmax(), Joint(max_iter=10), index=IndexingLayer(8, 2, 16)), Joint)
    with pytest.raises(ValueError, match="without inverted lists"):
        solver_of(CosineSoftmax(), index=IndexingLayer(8, 2, 16, 4))
    with pytest.raises(ValueError, match="cannot train through an index"):
        solver_of(CosineSoftmax(), SphereSweeps(), index=IndexingLayer(8, 2, 16))


def test_constructors_have_at_most_ten_parameters_and_clone() -> None:
    model = nk.TwoTower(8, loss=AllPairs(omega=0.5), solver=ALS(max_iter=3), left=Tower((8,)), random_state=0)
    assert len(model.get_params(deep=False)) <= 10
    copy = clone(model)
    assert copy.loss is not model.loss
    assert (copy.loss.omega, copy.solver.max_iter, copy.left.hidden) == (0.5, 3, (8,))


def test_nested_parameters_reach_objects_and_strings() -> None:
    model = nk.TwoTower(solver="ials++").set_params(loss__omega=0.25, solver__max_iter=2)
    assert model.loss.omega == 0.25
    assert (model.solver.name, model.solver.max_iter) == ("ials++", 2)
    with pytest.raises(ValueError, match="Invalid parameter 'batch_size'"):
        model.set_params(solver__batch_size=3)
    with pytest.raises(ValueError, match="solver is 'auto'"):
        nk.TwoTower().set_params(solver__max_iter=2)


@each(
    ("options", "kind", "message"),
    [
        ({"solver": Adam, "loss": "all-pairs"}, TypeError, "solver is of type .*; it must be one of 'auto', 'als'"),
        ({"loss": SimpleNamespace()}, TypeError, "loss is of type SimpleNamespace; .*AllPairs"),
        ({"solver": Adam(batch_size=64)}, ValueError, "batch_size is 64, but Adam takes the whole all-pairs loss"),
        ({"solver": Adam(start="warm")}, ValueError, "start is 'warm'; it must be one of 'auto', 'als', 'random'"),
        ({"solver": ALS(max_iter=0)}, ValueError, "max_iter is 0; it must be an integer of at least 1"),
        ({"solver": Adam(learning_rate=0)}, ValueError, "learning_rate is 0; it must be greater than 0"),
        ({"left": "mlp"}, TypeError, "left is of type str; it must be None, nk.embedding.Tower"),
        ({"right": Tower(hidden=(7,))}, ValueError, r"right is Tower\(hidden=\(7,\)\), but the interactions have no"),
        (
            {"solver": Joint()},
            ValueError,
            r"'joint' and index of type NoneType; it needs nk.quantization.IndexingLayer",
        ),
        (
            {"solver": "joint", "index": Passing()},
            ValueError,
            "index of type Passing; .*JointIndex",
        ),
        ({"solver": "joint", "index": IndexingLayer(8, 2, 16, 4)}, ValueError, "without inverted lists"),
        ({"index": SimpleNamespace(training=True)}, TypeError, "index is of type SimpleNamespace"),
        ({"index": HalfPhased()}, TypeError, "index is of type HalfPhased"),
        ({"n_components": 0}, ValueError, "n_components is 0; it must be an integer of at least 1"),
        ({"n_components": 2.5}, TypeError, "n_components is 2.5 of type float"),
        ({"solver": "magic"}, ValueError, "solver is 'magic'; it must be one of 'auto', 'als'"),
        ({"loss": "magic"}, ValueError, "loss is 'magic'; it must be one of 'auto', 'all-pairs'"),
        ({"loss": AllPairs(omega=-1)}, ValueError, "omega is -1; it must be a number of at least 0"),
        ({"loss": AllPairs(omega="much")}, TypeError, "omega is 'much' of type str"),
        ({"regularization": -1}, ValueError, "regularization is -1"),
        ({"loss": AllPairs(weighting="odd")}, ValueError, "weighting is 'odd'"),
        ({"loss": AllPairs(left_costs=[1.0])}, ValueError, r"left_costs has shape \(1,\); it must be \(40,\)"),
        ({"left": nn.Linear(2, 2), "solver": "als"}, ValueError, "which cannot train modules of your own"),
        ({"index": Passing(), "solver": "als"}, ValueError, "solver is 'als', which cannot train through an index"),
        ({"loss": "in-batch-softmax", "solver": "als"}, ValueError, "'in-batch-softmax' is trained by solver='adam'"),
        (SOFTMAX | {"regularization": 0.1}, ValueError, "embeddings of norm 1 have no penalty"),
        (SOFTMAX | {"solver": "als"}, ValueError, "go only together"),
        (SOFTMAX | {"left": nn.Linear(2, 2)}, ValueError, "leave out .* towers of your own, or use loss='all-pairs'"),
        (SOFTMAX | {"index": Passing()}, ValueError, "index of type Passing; .* else use loss='all-pairs'"),
        (SOFTMAX | {"n_components": 1}, ValueError, r"n_components is 1.*bias_power=0"),
        (SOFTMAX | {"solver": SphereSweeps(momentum=1.0)}, ValueError, "momentum"),
        ({"loss": AllPairs(), "solver": SphereSweeps()}, ValueError, "go only together"),
        ({"loss": CosineSoftmax(temperature=-1.0)}, ValueError, "temperature"),
        ({"loss": CosineSoftmax(imputed=1.5)}, ValueError, "imputed"),
        ({"loss": CosineSoftmax(imputed=0.2, ridge=-1.0)}, ValueError, "ridge"),
        ({"loss": CosineSoftmax(temperature=0.029)}, ValueError, "temperature is 0.029; it must be .* 0.03"),
        ({"loss": CosineSoftmax(bias_power=2.1)}, ValueError, "bias_power is 2.1; it must be .* 2"),
        ({"loss": CosineSoftmax(bias_power=-2.1)}, ValueError, "bias_power is -2.1; it must be .* -2"),
    ],
)
def test_what_does_not_go_together_is_refused_before_training(options: dict, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        nk.TwoTower(**{"n_components": 8} | options).fit(PLAIN)


def test_a_softmax_on_cosines_refuses_features_and_a_joint_fit_to_be_too_short_to_start_its_index() -> None:
    with pytest.raises(ValueError, match="features"):
        nk.TwoTower(4, loss="cosine-softmax").fit(FEATURED)
    model = nk.TwoTower(8, index=IndexingLayer(8, 2, 16), solver=Joint(max_iter=8), random_state=0)
    with pytest.raises(ValueError, match="max_iter is 8; solver 'joint' starts the index at step 9"):
        model.fit(PLAIN)


def test_the_given_module_is_not_trained() -> None:
    index = IndexingLayer(4, 2, 4, buffer_size=16)
    before = {name: value.clone() for name, value in index.state_dict().items()}
    nk.TwoTower(4, index=index, solver=Adam(max_iter=2), regularization=0.02, random_state=0).fit(PLAIN)
    assert all(torch.equal(value, before[name]) for name, value in index.state_dict().items())
