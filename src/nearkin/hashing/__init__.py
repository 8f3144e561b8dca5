"""Vectors to bits: OnE and OgE, which reduce dimensions and quantize jointly, and classic methods for comparison.

All share one contract: `fit(X)`, `project(X)` (real values whose signs are the code), `encode(X)` (packed uint8),
`quantization_error(X)`, `to_faiss()`, `search`, `save` and `load`.
"""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.hashing.base import load as load
    from nearkin.hashing.bits import unpack_signs as unpack_signs
    from nearkin.hashing.itq import ITQ as ITQ
    from nearkin.hashing.linear import PCAHash as PCAHash
    from nearkin.hashing.linear import RandomHyperplanes as RandomHyperplanes
    from nearkin.hashing.linear import Signs as Signs
    from nearkin.hashing.scq import OgE as OgE
    from nearkin.hashing.scq import OnE as OnE

lazily(__name__, __file__)
