"""Decoded rows are compared at their norms where the index knows them, one of all or a byte each, and only then."""

from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from nearkin import ITQ, Index, ProductQuantizer
from nearkin.linalg.norms import Norms
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import ResidualQuantizer, ScalarQuantizer
from tests.refusals import each_refused

rng = np.random.default_rng(0)
X = rng.normal(size=(700, 24)) / np.arange(1, 25) ** 0.3 + 0.1
UNIT = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
# heavy tails, and so different norms, about a mean that is not 0
HEAVY = (np.random.default_rng(3).standard_t(3, size=(1200, 48)) / np.arange(1, 49) ** 0.4 + 0.2).astype(np.float32)
ROWS, QUERIES = HEAVY[200:], HEAVY[:200]
OWN, ASKED = UNIT[100:], UNIT[:100]
CODES = ProductQuantizer(6, 64, max_iter=2, random_state=0)


@cache
def fitted(n_lists: int = 0) -> ProductQuantizer:
    return clone(CODES).set_params(n_lists=n_lists).fit(ROWS)


def test_one_norm_is_known_only_if_all_rows_have_it() -> None:
    several = UNIT * np.linspace(1, 1.2, len(UNIT))[:, None]
    for rows, norm in ((several, None), (UNIT + 1e4, None), (0 * UNIT, None), (UNIT, 1), (512 * UNIT, 512)):
        index = Index.build(rows.astype(np.float32), ProductQuantizer(4, 8, init="pca", max_iter=1, random_state=0))
        assert (index.norms is None) if norm is None else index.norms.levels[0] == pytest.approx(norm), rows[:2]
    assert Norms.shared(np.zeros((3, 2))) is None  # nothing can be divided by it


def test_the_one_norm_is_forgotten_with_a_row_of_another(tmp_path: Path) -> None:
    index = Index.build(OWN[:100], CODES).update([3], OWN[200:201])
    with pytest.raises(ValueError, match="not in the index"):
        index.update([10**6], 2 * OWN[:1])
    assert index.norms.levels[0] == 1
    index.add(2 * OWN[:1])  # from here on FAISS's own scores hold
    index.save(tmp_path / "idx")
    for one in (index, Index.load(tmp_path / "idx")):
        assert one.norms is None
        np.testing.assert_allclose(one.search(ASKED, 7)[0], index.faiss_index.search(ASKED, 7)[0], atol=1e-6)


def test_codes_learned_for_the_order_of_the_rows_keep_it() -> None:
    """Of 8,000 sentences they lost .008 of 10 neighbours at another length."""
    for trained, metric in (("ip", "cosine"), ("l2", "l2")):
        quantizer = ResidualQuantizer(2, 16, metric=trained, known=True, max_iter=1, random_state=0)
        assert Index.build(OWN[:300], quantizer, metric=metric).norms is None


def test_codes_finer_than_the_norms_differ_keep_these() -> None:
    """Half precision of SIFT, whose lengths differ by .1 %, once lost neighbours at one length."""
    rows = (512 * OWN * (1 + 0.002 * np.sin(np.arange(len(OWN)))[:, None])).astype(np.float16).astype(np.float32)
    assert Norms.shared(rows) is not None
    exact = Index.build(rows).search(512 * ASKED, 10)[1]
    for bits, least in ((8, 0.9), (16, 1.0)):
        index = Index.build(rows, ScalarQuantizer(bits))
        assert index.norms is None
        kept = recall_k_at_k(index.search(512 * ASKED, 10)[1], exact, 10)
        assert kept >= least, (bits, kept)


def test_norms_are_refused_where_they_rank_nothing() -> None:
    made = ((fitted(), "cosine"), (None, "l2"), (ITQ(8, random_state=0), "hamming"))
    calls = (partial(Index.build, ROWS, quantizer, metric=metric, norms=True) for quantizer, metric in made)
    match = r"norms are for codes by metric 'l2' or 'ip'|fitted on others"
    each_refused((call, ValueError, match) for call in calls)


def test_indexes_of_other_norms_cannot_be_merged() -> None:
    index, far = (Index.build(scale * ROWS, fitted(), norms=True) for scale in (1, 2))
    plain = Index.build(ROWS, fitted())
    for one, other in ((index, far), (index, plain), (plain, index)):
        with pytest.raises(ValueError, match="different quantizers"):
            one.merge(other)
    assert len(index) == len(index.norms.codes) == len(ROWS)


def test_norms_of_hard_rows_are_finite_and_near() -> None:
    for rows in (0 * X[:5], X[:1], 1e12 * X, 1e-15 * X, X + 1e4, np.repeat(X[:1], 9, axis=0)):
        rows = rows.astype(np.float32)
        norms = Norms.learned(rows).with_rows(rows)
        true = np.linalg.norm(rows.astype(np.float64) - norms.centre, axis=1)
        np.testing.assert_allclose(np.median(norms.of(slice(None))), np.median(true), rtol=0.05, atol=1e-3 * true.max())
        np.testing.assert_array_equal(np.concatenate([norms.named(row[None]) for row in rows[:30]]), norms.codes[:30])


def test_far_rows_leave_the_norms_of_the_others_alone() -> None:
    rows = X.astype(np.float32)
    far = np.concatenate([rows, rows[:1] * np.float32(1e6), rows[1:2] * np.float32(1e9)])
    norms, alone = Norms.learned(far).with_rows(far), Norms.learned(rows)
    np.testing.assert_allclose(norms.centre, alone.centre, atol=1e-5)
    for found, wanted in ((norms.of(slice(len(X))), rows), (norms.of(slice(len(X), None)), far[len(X) :])):
        true = np.linalg.norm(wanted.astype(np.float64) - norms.centre, axis=1)
        assert np.median(np.abs(found / true - 1)) < 0.02


def test_arrays_of_other_norms_are_refused() -> None:
    whole = {"centre": np.zeros(2), "levels": np.arange(256.0), "codes": np.zeros(5, np.uint8)}
    assert len(Norms.checked(**whole, shape=(5, 2)).of(slice(None))) == 5
    changes = (
        {"codes": np.zeros(4, np.uint8)}, {"codes": np.zeros(5, np.int64)}, {"levels": np.zeros(9, np.float32)},
        {"centre": np.zeros(3, np.float32)}, {"centre": np.full(2, np.nan)}, {"levels": np.full(256, -1.0)},
    )  # fmt: skip
    calls = (partial(Norms.checked, **whole | change, shape=(5, 2)) for change in changes)
    each_refused((call, ValueError, "cannot be of 5 rows") for call in calls)


def test_all_rows_are_encoded_again_with_their_norms() -> None:
    index = Index.build(ROWS, fitted(), norms=True)
    index.recode(fitted(5), ROWS)
    expected = Index.build(ROWS, fitted(5), norms=index.norms)
    np.testing.assert_allclose(index.search(QUERIES, 5)[0], expected.search(QUERIES, 5)[0], rtol=1e-5)
