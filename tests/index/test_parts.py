"""An index is read whole when it is loaded; the quantizer is made of what was read when it is first asked for."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.index.parts import SavedQuantizer
from nearkin.jobs.check import check
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer
from tests.covering import each
from tests.storage.signed import signed


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    X = rng.normal(size=(200, 8)).astype(np.float32)
    nk.Index.build(X, nk.ProductQuantizer(2, 16, init="identity", random_state=0)).save(tmp_path / "idx")
    return tmp_path / "idx"


def test_the_quantizer_outlives_its_folder(folder: Path, rng: np.random.Generator) -> None:
    """A server that loaded an index goes on with it, also after another was saved in its place."""
    whole, index = nk.Index.load(folder).quantizer, nk.Index.load(folder)
    index.search(np.zeros((1, 8), np.float32), k=1)
    assert isinstance(index._quantizer, SavedQuantizer)
    shutil.rmtree(folder)
    more = rng.normal(size=(5, 8)).astype(np.float32)
    np.testing.assert_array_equal(index.quantizer.encode(more), whole.encode(more))
    assert len(index.add(more)) == 205
    assert index.quantizer is index.quantizer


MADE = {
    "product": lambda **o: nk.ProductQuantizer(4, 16, max_iter=1, **o),
    "product of two columns": lambda **o: nk.ProductQuantizer(4, 7, rotation=None, max_iter=1, **o),
    "residual": lambda **o: ResidualQuantizer(4, 16, max_iter=1, **o),
    "product residual": lambda **o: ProductResidualQuantizer(2, 2, 16, max_iter=1, **o),
}


@each("kind", MADE)
def test_a_quantizer_of_another_index_is_refused_with_valid_checksums(kind: str, tmp_path: Path, rng) -> None:
    """`check` called an index of 4 lists under a quantizer of 200 whole, and `add` wrote out of bounds."""
    X = rng.normal(size=(250, 8)).astype(np.float32)
    others = {
        "itself": MADE[kind](n_lists=4, random_state=0),
        "of more lists": MADE[kind](n_lists=200, random_state=0),
        "without lists": MADE[kind](random_state=0),
        "learned otherwise": MADE[kind](n_lists=4, random_state=5),
        "of other bytes": nk.ProductQuantizer(2, 16, rotation=None, n_lists=4, max_iter=1, random_state=0),
        "of more bits": nk.ProductQuantizer(4, 64, n_lists=4, max_iter=1, random_state=0),
        "of another kind": ScalarQuantizer(8),
    }
    nk.Index.build(X, others["itself"]).save(tmp_path / "idx")
    for name, quantizer in others.items():
        folder = shutil.copytree(tmp_path / "idx", tmp_path / name)
        shutil.rmtree(folder / "quantizer")
        quantizer.fit(X).save(folder / "quantizer")
        signed(folder)
        if name == "itself":
            assert len(nk.Index.load(folder).add(X)) == 500
            continue
        with pytest.raises(ValueError, match="do not belong to each other"):
            nk.Index.load(folder)
        assert "do not belong to each other" in check(folder)["damaged"][0]
