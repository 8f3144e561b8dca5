"""A trainable index as a torch module: rotation, codebooks and phases of `IndexingLayer`."""

from nearkin._lazy import lazily
from nearkin.quantization.layer.layer import ANGLE as ANGLE
from nearkin.quantization.layer.layer import BY_GRADIENT as BY_GRADIENT
from nearkin.quantization.layer.layer import CENTROIDS as CENTROIDS
from nearkin.quantization.layer.layer import ROTATIONS as ROTATIONS
from nearkin.quantization.layer.layer import IndexingLayer as IndexingLayer
from nearkin.quantization.layer.layer import optimizers as optimizers

lazily(__name__, __file__)
