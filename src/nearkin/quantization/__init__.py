"""Vectors to bytes: product quantization with learned rotations."""

from typing import Any

from nearkin.quantization.axis import AxisQuantizer as AxisQuantizer
from nearkin.quantization.best import best as best
from nearkin.quantization.norm_explicit import NormExplicitQuantizer as NormExplicitQuantizer
from nearkin.quantization.product import ProductQuantizer as ProductQuantizer
from nearkin.quantization.residual import ProductResidualQuantizer as ProductResidualQuantizer
from nearkin.quantization.residual import ResidualQuantizer as ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer as ScalarQuantizer


def __getattr__(name: str) -> Any:
    """`IndexingLayer` and `optimizers`, which need torch: imported on first use."""
    if name not in ("IndexingLayer", "optimizers"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nearkin.quantization import layer

    return getattr(layer, name)
