"""Which problems show a tuned number, and what to compare it with where half and twice as much would not do."""

import re
from typing import Any

PRODUCT = ("product, SIFT, 8 bytes", "product, GIST, 16 bytes")
RESIDUAL = ("residual, SIFT, 8 bytes", "residual, GIST, 8 bytes")
FAR = ("product with far rows, SIFT, 8 bytes", "product with far rows, GIST, 16 bytes")
KNOWN = ("known rows, word vectors, 8 bytes", "known rows, GIST, 8 bytes")
SIGNS = ("signs, sentences", "signs, SIFT")
IN_LISTS = ("in lists, SIFT, 8 bytes", "in lists, GIST, 16 bytes")
BY_PRODUCT = ("by inner product, SIFT, 8 bytes", "by inner product, sentences, 24 bytes")
STE = ("STE", "STE, a tenth wrong")
SVRG = ("STE by SVRG-SBB", "STE by SVRG-SBB, a tenth wrong")


def pairs(way: str) -> tuple[str, str]:
    """A way to learn from pairs on two data sets."""
    return f"{way}, MovieLens", f"{way}, Gowalla, a part"


def features(way: str) -> tuple[str, str]:
    """The same on planted pairs of entities with features."""
    return f"{way}, planted features", f"{way}, wide planted features"


# The longest name that a field begins with has its problems.
PROBLEMS_OF = {
    "embedding.ordinal.answers": ("STE, dimension chosen", "STE, dimension chosen, a tenth wrong"),
    "embedding.ordinal.objective": STE,
    "embedding.ordinal.objective.extra": ("STE in the plane", "STE in the plane, a tenth wrong"),
    "embedding.ordinal.objective.starts": ("STE in the plane", "STE in the plane, a tenth wrong"),
    "embedding.ordinal.questions": ("questions, plane", "questions, clusters"),
    "embedding.two_tower.als": features("all pairs"),
    "embedding.two_tower.choice": pairs("default"),
    "embedding.two_tower.cosine_softmax": pairs("softmax"),
    "embedding.two_tower.fitting": pairs("updates"),
    "embedding.two_tower.gradient": features("Gauss-Newton"),
    "embedding.two_tower.gradient.epochs": features("batches"),
    "embedding.two_tower.gradient.batch": features("batches"),
    "embedding.two_tower.gradient.batch_rate": features("batches"),
    "embedding.two_tower.joint": pairs("joint index"),
    "embedding.two_tower.objective": pairs("all pairs"),
    "index.index": IN_LISTS,
    "index.searching": BY_PRODUCT,
    "metrics.trial.queries": ("product with queries, sentences, 24 bytes", "product with queries, GIST, 16 bytes"),
    "quantization.additive": RESIDUAL,
    "quantization.best": ("best, SIFT, 8 bytes", "best, GIST, 8 bytes"),
    "quantization.codebooks": ("product, GIST, 16 bytes", "product, MNIST, 16 bytes"),
    "quantization.codebooks.coarse_iterations": IN_LISTS,
    "quantization.codebooks.far_share": FAR,
    "quantization.order": SIGNS,
    **{f"quantization.order.{name}": KNOWN for name in ("code_list_rows", "code_lists", "code_steps", "code_rate")},
    "quantization.product": ("product by batches, SIFT, 8 bytes", "product by batches, GIST, 16 bytes"),
    "quantization.scalar": ("scalars of 4 bits, sentences", "scalars of 4 bits, GIST"),
    "quantization.training": PRODUCT,
    "solvers.finite_sum": SVRG,
    "solvers.newton": features("Gauss-Newton"),
}

OTHERS: dict[str, tuple[Any, ...]] = {
    "embedding.ordinal.answers.dimensions": ((2, 4, 8, 16), tuple(range(1, 21))),
    "embedding.two_tower.als.dampings": ((-6, -6, 1), (-3, 0, 4)),
    "quantization.scalar.clipped": ((0.0,), (1e-3,)),
    "quantization.additive.memory": (0.0, 0.35),
    "quantization.additive.share": (0.0, 1.0),
    "quantization.additive.shrink": (0.0, 1.0),
    "quantization.additive.margin": (1.0, 10.0),
    "quantization.additive.power": (0.0, 0.5),
    "quantization.additive.column": (0.0, 0.5),
    "quantization.training.beyond": (0.0, 6.0),
    "quantization.training.space_share": (0.0, 1.0),
    "embedding.two_tower.choice.temperatures": ((0.37, 0.21, 0.12), (0.37, 0.28, 0.21, 0.16, 0.12, 0.09, 0.07)),
    "embedding.two_tower.choice.strengths": ((0.25,), (0.5, 0.125)),
    "embedding.two_tower.choice.imputed": (((0.2, 0.5),), ((0.2, 0.5), (0.3, 0.5))),
}

# names of limits, of which more would only take longer
HALVED = re.compile(r"(^|_)(rows|queries|lefts|pairs|sample|depth|neighbours)$")


def problems_of(field: str) -> tuple[str, ...]:
    """Names in `PROBLEMS` of the problems that show a field, "MODULE.NAME"."""
    known = [name for name in PROBLEMS_OF if field == name or field.startswith(f"{name}.")]
    if not known:
        raise ValueError(f"{field} has no problem that shows it; add one to PROBLEMS_OF")
    return PROBLEMS_OF[max(known, key=len)]
