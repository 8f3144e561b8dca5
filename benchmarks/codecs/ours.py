"""Our codecs at a size, as FAISS indexes whose rows are coded by our own `encode`."""

from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np

from benchmarks.codecs.peers import LONGEST, Made, Make
from nearkin import ProductQuantizer, Rotation
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer
from nearkin.quantization.faiss_bridge import behind_rotation


def codecs(n_bytes: int, d: int) -> Iterator[tuple[str, Make]]:
    """Product codes with every default, residual codes with the default beam and a wide one."""
    yield "ours, product", lambda X: _made("ours, product", ProductQuantizer(n_bytes, random_state=0), X)
    for splits in (2, 4, 8, 16, 32):
        if n_bytes % splits == 0 and d % splits == 0 and 4 <= n_bytes // splits <= 8:
            name = f"ours, product residual {splits} x {n_bytes // splits}"
            quantizer = ProductResidualQuantizer(splits, n_bytes // splits, random_state=0)
            yield name, lambda X, n=name, q=quantizer: _made(n, q, X, beams=(32,))
    if n_bytes <= LONGEST:
        yield (
            "ours, residual",
            lambda X: _made("ours, residual", ResidualQuantizer(n_bytes, random_state=0), X, beams=(32,)),
        )


def beside_rabitq(bits: int, d: int) -> Iterator[tuple[str, Make]]:
    """RaBitQ behind our rotation, and product codes of its bytes."""
    n_bytes = faiss.index_factory(d, f"RaBitQ{bits}" if bits > 1 else "RaBitQ").sa_code_size()
    yield (
        "ours, product, RaBitQ's bytes",
        lambda X: _made("ours, product, RaBitQ's bytes", ProductQuantizer(n_bytes, random_state=0), X),
    )

    def turned(X: np.ndarray) -> Made:
        R = Rotation("rabitq", random_state=0).fit(X).rotation_
        index = behind_rotation(R, faiss.index_factory(d, f"RaBitQ{bits}" if bits > 1 else "RaBitQ"))
        index.train(X)
        yield f"FAISS RaBitQ, {bits} bits, nk.Rotation", index, index.add

    yield "RaBitQ, nk.Rotation", turned


def _made(name: str, quantizer: Any, X: np.ndarray, beams: tuple[int, ...] = ()) -> Made:
    index = quantizer.fit(X).to_faiss()
    yield name, index, lambda rows: quantizer.add_to(index, rows)
    for beam in beams:
        quantizer.set_params(beam_size=beam)
        yield f"{name}, beam {beam}", index, lambda rows: quantizer.add_to(index, rows)
