"""What is fitted, and still learns: a pickle and a deep copy go on as the original does, and each alone."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import nearkin as nk
from nearkin.quantization import IndexingLayer

ROTATIONS = (None, "procrustes", "cayley", "givens-greedy", "givens-steepest", "givens-random")
DRAWS = np.random.default_rng(0)
A, B, C = DRAWS.normal(size=(3, 120, 6)).astype(np.float32)
PAIRS = [np.unique(DRAWS.integers(0, 12, (90, 2)), axis=0) for _ in "ABC"]
TRIPLETS = [np.array([DRAWS.permutation(10)[:3] for _ in range(80)]) for _ in "ABC"]
LAYER = "indexing layer"


def learners() -> dict[str, tuple[Any, Callable[[Any, int], Any]]]:
    """A fitted model of each family, and what it learns next from the second or third part of its data."""
    made = dict[str, tuple[Any, Callable[[Any, int], Any]]]()
    for rotation in ROTATIONS:
        for seed in (0, np.random.default_rng(0), np.random.RandomState(0)):
            quantizer = nk.ProductQuantizer(2, 8, rotation, max_iter=1, random_state=seed)
            made[f"{rotation} {type(seed).__name__}"] = quantizer, lambda model, i: model.partial_fit((A, B, C)[i])
    towers = nk.TwoTower(4, loss=nk.embedding.AllPairs(), random_state=np.random.default_rng(0))
    made["towers"] = towers, lambda model, i: model.partial_fit(nk.Interactions.from_pairs(*PAIRS[i].T))
    ordinal = nk.OrdinalEmbedding(2, max_iter=2, random_state=np.random.default_rng(0))
    made["ordinal"] = ordinal, lambda model, i: model.partial_fit(TRIPLETS[i])
    made[LAYER] = IndexingLayer(6, 2, 8, random_state=0), lambda layer, i: layer(torch.from_numpy((A, B, C)[i]))[1]
    return made


LEARNERS = learners()


def values(model: Any) -> list[bytes]:
    """The bytes of every fitted array."""
    state = model.state_dict() if isinstance(model, torch.nn.Module) else vars(model)
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray | torch.Tensor)}
    return [name.encode() + np.asarray(array).tobytes() for name, array in sorted(arrays.items())]


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.filterwarnings("ignore")
def test_a_pickle_and_a_copy_go_on_as_the_original_and_alone(name: str) -> None:
    """Running quantizers with Givens rotations could not be pickled, and copies drew from one generator."""
    model, step = copy.deepcopy(LEARNERS[name])
    for part in (0, 1):
        step(model, part)
    before = values(model)
    assert before
    copies = pickle.loads(pickle.dumps(model)), copy.deepcopy(model)
    other = copy.deepcopy(model)
    step(other, 0)
    step(other, 2)
    for made in (*copies, model):
        assert values(made) == before
        step(made, 2)
    assert values(copies[0]) == values(copies[1]) == values(model)
