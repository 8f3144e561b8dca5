"""Vectors to bytes: product quantization with trained rotations."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily
from nearkin.quantization.axis import AxisQuantizer as AxisQuantizer
from nearkin.quantization.best import best as best
from nearkin.quantization.product import ProductQuantizer as ProductQuantizer
from nearkin.quantization.residual import ProductResidualQuantizer as ProductResidualQuantizer
from nearkin.quantization.residual import ResidualQuantizer as ResidualQuantizer
from nearkin.quantization.scalar import ScalarQuantizer as ScalarQuantizer

if TYPE_CHECKING:  # these need torch
    from nearkin.quantization.layer import IndexingLayer as IndexingLayer
    from nearkin.quantization.layer import optimizers as optimizers

lazily(__name__, __file__)
