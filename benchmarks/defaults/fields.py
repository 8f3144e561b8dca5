"""Which problems show a tuned number, and what to compare it with where half and twice as much would not do."""

from typing import Any

PRODUCT = ("product, SIFT, 8 bytes", "product, GIST, 16 bytes")
RESIDUAL = ("residual, SIFT, 8 bytes", "residual, GIST, 8 bytes")
LENGTHS = ("lengths, GIST, 8 bytes", "lengths, MNIST, 2 x 8")
BEST = ("best, SIFT, 8 bytes", "best, GIST, 16 bytes")
ALL_PAIRS = ("all pairs, MovieLens", "all pairs, Gowalla, a fifth")
SOFTMAX = ("softmax, MovieLens", "softmax, Gowalla, a fifth")
CHOSEN = ("pairs of MovieLens", "pairs of Gowalla, a fifth")

# The longest name that a field begins with has its problems.
PROBLEMS_OF = {
    "quantization.additive": RESIDUAL,
    "quantization.additive.length": LENGTHS,
    "quantization.additive.restoring": LENGTHS,
    "quantization.training": PRODUCT,
    "quantization.best": BEST,
    "quantization.norm_explicit": ("norm-explicit, GIST, 16 bytes", "norm-explicit, heavy tails, 16 bytes"),
    "quantization.engine_rotation": ("signs, sentences", "signs, SIFT"),
    "quantization.order": ("signs, sentences", "signs, SIFT"),
    "quantization.pair_map": ("pairs, sentences, 8 bytes", "pairs, glosses, 8 bytes"),
    "quantization.semantic_ids": ("semantic ids, sentences", "semantic ids, GIST"),
    "hashing.scq": ("OgE with labels, network features", "OgE with labels, GIST"),
    "embedding.two_tower.choice": CHOSEN,
    "embedding.two_tower.fitting": ("updates, MovieLens", "updates, Gowalla, a fifth"),
    "embedding.two_tower.joint": ("joint index, MovieLens", "joint index, Gowalla, a fifth"),
    "embedding.two_tower.objective": ALL_PAIRS,
    "embedding.two_tower.cosine_softmax": SOFTMAX,
    "embedding.ordinal.objective": ("STE", "STE, a tenth wrong"),
    "embedding.ordinal.questions": ("questions, plane", "questions, clusters"),
}

OTHERS: dict[str, tuple[Any, ...]] = {
    "quantization.additive.memory": (0.0, 0.35),
    "quantization.additive.coded_twice": (1, 6),
    "quantization.additive.diverged": (1e9,),
    "quantization.additive.share": (0.0, 1.0),
    "quantization.additive.shrink": (0.0, 1.0),
    "quantization.additive.margin": (1.0, 10.0),
    "quantization.additive.power": (0.0, 0.5),
    "quantization.additive.column": (0.0, 0.5),
    "quantization.additive.restoring": (0.0, 1.0),
    "quantization.training.beyond": (0.0, 6.0),
    "quantization.training.race_rounds": ((1, 1), (6, 4)),
    "quantization.training.space_share": (0.0, 1.0),
    "quantization.training.distortion_weight": (0.0, 1.0),
    "quantization.training.hopeless": (1.0, 2.0),
    "quantization.best.chains": ((4,), (8,)),
    "quantization.best.mostly_known": (0.25, 1.0),
    "hashing.scq.multiples": ((1.0,), (0.5, 1.0, 2.0, 4.0)),
    "embedding.two_tower.choice.temperatures": ((0.37, 0.21, 0.12), (0.37, 0.28, 0.21, 0.16, 0.12, 0.09, 0.07)),
    "embedding.two_tower.choice.imputed": ((0.2, 0.2), (0.3, 0.3)),
    "embedding.two_tower.choice.strengths": ((0.25,), (0.5, 0.125)),
}


def problems_of(field: str) -> tuple[str, ...]:
    """Names in `PROBLEMS` of the problems that show a field, "MODULE.NAME"."""
    known = [name for name in PROBLEMS_OF if field == name or field.startswith(f"{name}.")]
    if not known:
        raise ValueError(f"{field} has no problem that shows it; add one to PROBLEMS_OF")
    return PROBLEMS_OF[max(known, key=len)]
