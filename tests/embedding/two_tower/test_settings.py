"""The parameters of `TwoTower` as checked settings: what "auto" chooses, and what is refused."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from torch import Tensor, nn

import nearkin as nk
from nearkin.embedding import ALS, Adam, AllPairs, CosineSoftmax, InBatchSoftmax, Joint, SphereSweeps, Tower
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
    plain, coarse, cosines = IndexingLayer(8, 2, 16), IndexingLayer(8, 2, 16, 4), CosineSoftmax()
    for options, solver in (
        ({}, ALS),
        ({"pairs": FEATURED}, ALS),
        ({"left": nn.Linear(16, 4), "pairs": FEATURED}, Adam),
        ({"index": Passing()}, Adam),
        ({"index": plain}, Joint),
        ({"index": coarse}, Adam),  # lists cannot be learned by blocks
        ({"index": plain, "pairs": FEATURED}, Adam),
        ({"loss": InBatchSoftmax()}, Adam),
        ({"loss": cosines}, SphereSweeps),
        ({"loss": cosines, "index": plain}, Joint),
        ({"loss": cosines, "solver": Joint(max_iter=10), "index": plain}, Joint),
    ):
        assert isinstance(solver_of(**options), solver), options


def test_nested_parameters_reach_objects_and_strings() -> None:
    assert len(nk.TwoTower().get_params(deep=False)) <= 10
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
        ({"solver": Joint()}, ValueError, "'joint' and index of type NoneType; it needs nk.quantization.IndexingLayer"),
        ({"solver": "joint", "index": Passing()}, ValueError, "index of type Passing; .*JointIndex"),
        ({"solver": "joint", "index": IndexingLayer(8, 2, 16, 4)}, ValueError, "without inverted lists"),
        ({"solver": Joint(max_iter=8), "index": IndexingLayer(8, 2, 16)}, ValueError, "starts the index at step 9"),
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
        (SOFTMAX | {"index": IndexingLayer(8, 2, 16, 4)}, ValueError, "without inverted lists"),
        (SOFTMAX | {"solver": SphereSweeps(), "index": IndexingLayer(8, 2, 16)}, ValueError, "train through an index"),
        (SOFTMAX | {"pairs": FEATURED}, ValueError, "features"),
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
    made = {"n_components": 8, "random_state": 0, "pairs": PLAIN} | options
    pairs = made.pop("pairs")
    with pytest.raises(kind, match=message):
        nk.TwoTower(**made).fit(pairs)
