"""Codes and codebooks under a loss's own curvature, against the loss written out."""

import numpy as np
import pytest

from nearkin.quantization.codebooks import decode
from nearkin.quantization.layer.curvature import descend, rotated
from nearkin.records import RowForms
from tests.covering import each

N, D, M, K = 30, 6, 3, 4


def problem(seed: int = 0) -> tuple[np.ndarray, RowForms, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, N)
    A = rng.normal(size=(D, D))
    forms = RowForms(
        gram=(A @ A.T / D).astype(np.float32),
        ridge=rng.random(N).astype(np.float32),
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        places=rng.integers(0, 9, counts.sum()),
        curvature=rng.random(counts.sum()).astype(np.float32),
        points=rng.normal(size=(9, D)).astype(np.float32),
    )
    T = rng.normal(size=(N, D)).astype(np.float32)
    return T, forms, rng.integers(0, K, (N, M)), rng.normal(size=(M, K, D // M)).astype(np.float32)


def matrices(forms: RowForms) -> np.ndarray:
    """H_j by the definition in `RowForms`."""
    H = np.repeat(forms.gram[None].astype(float), N, 0) + forms.ridge[:, None, None] * np.eye(D)
    for j in range(N):
        for t in range(forms.indptr[j], forms.indptr[j + 1]):
            p = forms.points[forms.places[t]].astype(float)
            H[j] += forms.curvature[t] * np.outer(p, p)
    return H


def loss(T: np.ndarray, H: np.ndarray, codes: np.ndarray, C: np.ndarray) -> float:
    e = decode(codes, C).astype(float) - T
    return float(np.einsum("ja,jab,jb->", e, H, e)) / 2


@each("seed", range(3))
def test_codes_then_codebooks_lower_the_loss(seed: int) -> None:
    T, forms, codes, C = problem(seed)
    H = matrices(forms)
    found = descend(T, forms, codes, C)
    coded = loss(T, H, found.codes, C)
    assert coded == pytest.approx(found.value, rel=1e-4)
    assert coded < loss(T, H, codes, C)
    assert loss(T, H, found.codes, found.codebooks) < coded


def test_no_single_change_of_a_settled_code_is_better() -> None:
    T, forms, codes, C = problem()
    H = matrices(forms)
    for _ in range(10):
        codes = descend(T, forms, codes, C).codes
    best = loss(T, H, codes, C)
    for j in range(N):
        for m in range(M):
            for k in range(K):
                other = codes.copy()
                other[j, m] = k
                assert loss(T, H, other, C) >= best - 1e-4


def test_rotated_forms_measure_the_same_errors() -> None:
    T, forms, _, _ = problem()
    R = np.linalg.qr(np.random.default_rng(1).normal(size=(D, D)))[0].astype(np.float32)
    turned = matrices(rotated(forms, R))
    np.testing.assert_allclose(
        np.einsum("ja,jab,jb->j", T @ R, turned, T @ R), np.einsum("ja,jab,jb->j", T, matrices(forms), T), rtol=1e-4
    )
