"""Reading a saved quantizer whose kind is not known before: the one list of kinds, a line for each.

The classes are imported when one is made: they load scikit-learn, and an index that FAISS searches alone needs none.
"""

import os
from dataclasses import dataclass
from importlib import import_module

from nearkin._check import check_choice, check_integer
from nearkin._storage import SavedArrays, damage_named, read_saved
from nearkin.contracts import Quantizer

KINDS = {  # kind in config.json -> where the class, or the reader of several classes, stands
    "product quantizer": ("nearkin.quantization.product", "ProductQuantizer"),
    "scalar quantizer": ("nearkin.quantization.scalar", "ScalarQuantizer"),
    "residual quantizer": ("nearkin.quantization.residual", "ResidualQuantizer"),
    "product residual quantizer": ("nearkin.quantization.product_residual", "ProductResidualQuantizer"),
    "hasher": ("nearkin.hashing.loading", "load"),
}


@dataclass(frozen=True)
class SavedQuantizer:
    """A quantizer as its folder holds it; `n_bits` None for one to bytes."""

    content: SavedArrays
    n_features_in_: int
    n_bits: int | None

    def open(self) -> Quantizer:
        """The fitted quantizer; ValueError where the folder's values do not make one."""
        module, name = KINDS[self.content.config["kind"]]
        maker = getattr(import_module(module), name)
        return maker(self.content) if name == "load" else maker.load(self.content)


def read_quantizer(path: str | os.PathLike[str]) -> SavedQuantizer:
    """What a folder that a quantizer's `save` wrote holds; ValueError for a folder of another kind."""
    found = read_saved(path)
    check_choice(found.config["kind"], f"kind in {found.path / 'config.json'}", KINDS)
    with damage_named(found.path):
        d = check_integer(found.config["fitted"]["n_features_in_"], "n_features_in_", low=1)
        bits = found.config["params"]["n_bits"] if found.config["kind"] == "hasher" else None
        return SavedQuantizer(found, d, None if bits is None else check_integer(bits, "n_bits", low=1))


def load_quantizer(path: str | os.PathLike[str]) -> Quantizer:
    """The fitted quantizer in a folder that its `save` wrote; ValueError for a folder of another kind."""
    return read_quantizer(path).open()
