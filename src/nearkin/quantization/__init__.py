"""Vectors to bytes: product quantization with learned rotations."""

from nearkin.quantization.product import ProductQuantizer as ProductQuantizer
