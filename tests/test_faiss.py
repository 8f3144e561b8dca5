"""What FAISS's indexes have in common: the index behind a rotation."""

import faiss

from nearkin._faiss import METRIC_TYPES, innermost
from tests.covering import each


@each("metric", METRIC_TYPES)
def test_innermost_of_floats_is_behind_the_rotation(metric: str) -> None:
    inner = faiss.IndexPQ(8, 2, 4, METRIC_TYPES[metric])
    chain = faiss.IndexPreTransform(faiss.LinearTransform(8, 8), inner)
    assert isinstance(innermost(chain), faiss.IndexPQ)
    assert innermost(chain).metric_type == METRIC_TYPES[metric]
    assert isinstance(innermost(inner), faiss.IndexPQ)
    assert isinstance(innermost(faiss.IndexBinaryFlat(16)), faiss.IndexBinaryFlat)
