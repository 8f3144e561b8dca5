"""Reading a saved quantizer whose kind is not known before: the one list of kinds, a line for each."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nearkin import hashing
from nearkin._check import check_choice
from nearkin._storage import read_config
from nearkin.contracts import Quantizer
from nearkin.quantization.product import ProductQuantizer
from nearkin.quantization.product_residual import ProductResidualQuantizer
from nearkin.quantization.residual import ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer

KINDS: dict[str, Callable[..., Any]] = {  # kind in config.json -> how to read it
    "product quantizer": ProductQuantizer.load,
    "scalar quantizer": ScalarQuantizer.load,
    "residual quantizer": ResidualQuantizer.load,
    "product residual quantizer": ProductResidualQuantizer.load,
    "hasher": hashing.load,
}


def load_quantizer(path: str | os.PathLike) -> Quantizer:
    """The fitted quantizer in a folder that its `save` wrote; ValueError for a folder of another kind."""
    kind = read_config(path)["kind"]
    return KINDS[check_choice(kind, f"kind in {Path(path) / 'config.json'}", KINDS)](path)
