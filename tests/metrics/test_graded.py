"""Graded relevance against ir-measures."""

import numpy as np
import pytest
import scipy.sparse as sp

from nearkin.metrics.retrieval import graded_values


def test_graded_values_are_those_of_ir_measures() -> None:
    ir = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(0)
    found = np.array([rng.permutation(300)[:150] for _ in range(20)])
    found[3, 5:] = -1  # a search that found less
    grades = sp.csr_matrix(np.where(rng.random((20, 320)) < 0.1, rng.integers(1, 4, (20, 320)), 0))
    places = zip(*grades.nonzero(), strict=True)
    qrels = [ir.Qrel(f"q{q}", f"d{d}", int(grades[q, d])) for q, d in places]
    run = [
        ir.ScoredDoc(f"q{q}", f"d{d}", -float(place))
        for q, row in enumerate(found.tolist())
        for place, d in enumerate(row)
        if d >= 0
    ]
    expected = {
        (str(value.measure), value.query_id): value.value
        for value in ir.iter_calc([ir.nDCG @ 10, ir.R @ 100, ir.RR @ 10], qrels, run)
    }
    values = graded_values(found, grades)
    for name, theirs in {"NDCG@10": "nDCG@10", "Recall@100": "R@100", "MRR@10": "RR@10"}.items():
        np.testing.assert_allclose(values[name], [expected[theirs, f"q{q}"] for q in range(20)], atol=1e-12)
