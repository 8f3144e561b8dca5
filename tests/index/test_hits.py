"""Hits as tables of other libraries: a row for each query and place that has an answer."""

import numpy as np
import pytest

import nearkin as nk
from tests.covering import each

X, Q = (np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32) for seed, n in ((0, 60), (1, 3)))


@each(("backend", "kind"), [("pyarrow", "exact"), ("polars", "bits"), ("pandas", "exact")])
def test_a_row_for_each_query_and_place(backend: str, kind: str) -> None:
    pytest.importorskip(backend)
    names = [f"row {i}" for i in range(60)]
    quantizer, metric = (None, "l2") if kind == "exact" else (nk.ITQ(8, random_state=0), "hamming")
    index = nk.Index.build(X, quantizer, names, metric)
    scores, ids = index.search(Q, 3, among=[names[:9], names[3:5], names[7:8]])  # of 3, 2 and 1 answers
    table = nk.hits(scores, ids, ["a", "b", "c"], backend=backend)
    assert type(table).__module__.partition(".")[0] in (backend, "pyarrow")
    columns = {name: list(table[name].to_pylist() if backend == "pyarrow" else table[name]) for name in COLUMNS}
    assert columns["query"] == ["a", "a", "a", "b", "b", "c"]
    assert columns["rank"] == [1, 2, 3, 1, 2, 1]
    assert columns["id"] == [*ids[0], *ids[1, :2], ids[2, 0]]
    assert columns["score"] == [*scores[0], *scores[1, :2], scores[2, 0]]


COLUMNS = ("query", "rank", "id", "score")


def test_queries_without_names_are_counted_and_shapes_must_agree() -> None:
    scores, ids = nk.Index.build(X).search(Q, 2)
    assert nk.hits(scores, ids)["query"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert nk.hits(scores[:0], ids[:0]).column_names == list(COLUMNS)
    with pytest.raises(ValueError, match=r"scores have shape \(3, 2\), ids \(3, 2\) and queries \(2,\)"):
        nk.hits(scores, ids, ["a", "b"])
    with pytest.raises(ValueError, match="backend is 'spark'"):
        nk.hits(scores, ids, backend="spark")
