"""Digests of the codes of every codec and hasher on fixed rows, and the public names: what a change must not move.

python -m tests.digests before.json        then, after the change: python -m tests.digests after.json; diff the two
"""

import hashlib
import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

import nearkin as nk

CODECS = {
    "product": ("ProductQuantizer", (4, 32), {"max_iter": 4}),
    "product, as given": ("ProductQuantizer", (4, 32, None), {"max_iter": 4}),
    "product, givens": ("ProductQuantizer", (4, 16, "givens-greedy"), {"max_iter": 4}),
    "product, lists": ("ProductQuantizer", (4, 32), {"n_lists": 5, "max_iter": 4}),
    "product, 4 bits": ("ProductQuantizer", (6, 16), {"max_iter": 4}),
    "axes": ("AxisQuantizer", (6,), None),
    "scalar, 4": ("ScalarQuantizer", (4,), None),
    "scalar, 8": ("ScalarQuantizer", (8,), None),
    "scalar, 16": ("ScalarQuantizer", (16,), None),
    "residual": ("ResidualQuantizer", (4, 16), {"max_iter": 4}),
    "residual, lists": ("ResidualQuantizer", (4, 16), {"n_lists": 5, "max_iter": 4}),
    "residual, ip": ("ResidualQuantizer", (4, 16), {"metric": "ip", "max_iter": 4}),
    "residual, known": ("ResidualQuantizer", (4, 16), {"known": True, "max_iter": 4}),
    "residual, known, ip": ("ResidualQuantizer", (4, 16), {"metric": "ip", "known": True, "max_iter": 4}),
    "product residual": ("ProductResidualQuantizer", (2, 2, 16), {"max_iter": 4}),
    "product residual, lists": ("ProductResidualQuantizer", (2, 2, 16), {"n_lists": 5, "max_iter": 4}),
    **{
        name: (name, (12,), {})
        for name in ("RandomHyperplanes", "Signs", "PCAHash", "ITQ", "OnE", "OgE", "SphericalHashing", "KMeansHash")
    },
}
MODULES = ["", "data", "embedding", "export", "hashing", "index", "linalg", "metrics", "orthogonal", "quantization"]


def rows() -> dict[str, np.ndarray]:
    """Rows of different norms, and the same at norm 1."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(900, 24)) / np.arange(1, 25) ** 0.4 * rng.gamma(6, 1 / 6, size=(900, 1)) + 0.1
    return {"norms differ": X.astype(np.float32), "norm 1": (X / np.linalg.norm(X, axis=1)[:, None]).astype(np.float32)}


def digest(name: str, X: np.ndarray) -> str:
    """Of the codes; "gone" where the class is not public."""
    kind, sizes, options = CODECS[name]
    maker = getattr(nk.quantization, kind, None) or getattr(nk, kind, None) or getattr(nk.hashing, kind, None)
    if maker is None:
        return "gone"
    try:
        model = maker(*sizes) if options is None else maker(*sizes, **options, random_state=0)
        codes = model.fit(X).encode(X)
    except (TypeError, ValueError) as error:
        return f"refused: {error}"
    return hashlib.sha256(np.ascontiguousarray(codes)).hexdigest()[:16]


def snapshot() -> dict[str, object]:
    codes = {name: {kind: digest(name, X) for kind, X in rows().items()} for name in CODECS}
    modules = {name or "nearkin": import_module(f"nearkin.{name}" if name else "nearkin") for name in MODULES}
    names = {name: sorted(found for found in dir(module) if found[0] != "_") for name, module in modules.items()}
    return {"codes": codes, "names": names}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(snapshot(), indent=1) + "\n")
