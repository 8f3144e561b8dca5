"""Vectors to bytes: product quantization with trained rotations."""

from typing import Any

from nearkin.quantization.axis import AxisQuantizer as AxisQuantizer
from nearkin.quantization.best import best as best
from nearkin.quantization.product import ProductQuantizer as ProductQuantizer
from nearkin.quantization.residual import ProductResidualQuantizer as ProductResidualQuantizer
from nearkin.quantization.residual import ResidualQuantizer as ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer as ScalarQuantizer
from nearkin.quantization.sized import ProductCode as ProductCode


def __getattr__(name: str) -> Any:
    """`IndexingLayer` and `optimizers`, which need torch: imported on first use."""
    if name not in ("IndexingLayer", "optimizers"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nearkin.quantization import layer

    return getattr(layer, name)
