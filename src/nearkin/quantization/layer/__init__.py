"""A trainable index as a torch module: rotation, codebooks and phases of `IndexingLayer`."""

from nearkin._lazy import lazily
from nearkin.quantization.layer.layer import IndexingLayer as IndexingLayer
from nearkin.quantization.layer.layer import optimizers as optimizers

lazily(__name__, __file__)
