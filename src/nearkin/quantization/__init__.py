"""Vectors to bytes: product quantization with learned rotations."""
