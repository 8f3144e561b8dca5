"""Decoded rows are compared at their norms where the index knows them, one of all or a byte each, and only then."""

from functools import cache, partial
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from nearkin import ITQ, Index, ProductQuantizer
from nearkin._faiss import innermost
from nearkin.contracts import Quantizer
from nearkin.export.source import Source
from nearkin.linalg.norms import POWER, Norms
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import AxisQuantizer, ProductResidualQuantizer, ResidualQuantizer, ScalarQuantizer
from tests.covering import each
from tests.refusals import each_refused

rng = np.random.default_rng(0)
X = rng.normal(size=(700, 24)) / np.arange(1, 25) ** 0.3 + 0.1
UNIT = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
# heavy tails, and so different norms, about a mean that is not 0
HEAVY = (np.random.default_rng(3).standard_t(3, size=(1200, 48)) / np.arange(1, 49) ** 0.4 + 0.2).astype(np.float32)
ROWS, QUERIES = HEAVY[200:], HEAVY[:200]
SETS = {"one": (UNIT[100:], UNIT[:100]), "byte": (ROWS, QUERIES)}
CODES = {
    "product": ProductQuantizer(6, 64, max_iter=2, random_state=0),
    "product, padded": ProductQuantizer(5, 32, max_iter=2, random_state=0),
    "product, 4 bits": ProductQuantizer(6, 16, max_iter=2, random_state=0),
    "product, lists": ProductQuantizer(6, 64, n_lists=5, max_iter=2, random_state=0),
    "product, 4 bits, lists": ProductQuantizer(6, 16, n_lists=5, max_iter=2, random_state=0),
    "residual": ResidualQuantizer(3, 16, max_iter=1, random_state=2),
    "residual, by products": ResidualQuantizer(3, 16, metric="ip", max_iter=1, random_state=0),
    "residual, lists": ResidualQuantizer(3, 16, n_lists=5, max_iter=1, random_state=0),
    "product residual": ProductResidualQuantizer(2, 2, 16, max_iter=1, random_state=0),
    "product residual, lists": ProductResidualQuantizer(2, 2, 16, n_lists=5, max_iter=1, random_state=0),
    "scalar": ScalarQuantizer(4),
    "axes": AxisQuantizer(6),
}
# every code with a metric where all rows have one norm, and with one where each has a byte
CASES = [*zip(CODES, cycle(["one"]), cycle(["l2", "ip", "cosine"])), *zip(CODES, cycle(["byte"]), cycle(["ip", "l2"]))]


@cache
def fitted(name: str, kind: str = "byte") -> Quantizer:
    return clone(CODES[name]).fit(SETS[kind][0])


def build(name: str, kind: str, metric: str = "l2") -> Index:
    return Index.build(SETS[kind][0], fitted(name, kind), metric=metric, n_probe=5, norms=kind == "byte")


def decoded(index: Index, rows: np.ndarray) -> np.ndarray:
    """Rows (n, d + 1) by their definition: decoded, lengthened towards the nearest level of |x - centre|, and the rest
    of it in a column more (the slow twin)."""
    norms, centre = index.norms, index.norms.centre.astype(np.float64)
    centred = index.quantizer.decode(index.quantizer.encode(rows)) - centre
    true = np.linalg.norm(rows - centre, axis=1)
    wanted = norms.levels[np.abs(norms.levels - true[:, None]).argmin(axis=1)].astype(np.float64)
    centred *= ((wanted / np.linalg.norm(centred, axis=1)) ** (POWER if norms.n_bytes else 1))[:, None]
    rest = np.maximum(wanted**2 - np.square(centred).sum(axis=1), 0)
    return np.column_stack([centre + centred, np.sqrt(rest)])


def compared(metric: str, Q: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Scores (q, n) of rows (n, d + 1), smaller is nearer."""
    asked = np.pad(Q, ((0, 0), (0, 1)))
    return np.square(asked[:, None] - rows).sum(axis=2) if metric == "l2" else -asked @ rows.T


@each(("name", "kind", "metric"), CASES)
def test_scores_are_those_of_decoded_rows_at_their_norm(name: str, kind: str, metric: str, tmp_path: Path) -> None:
    """After rows came and went, and after saving."""
    own, Q = SETS[kind][0], SETS[kind][1][:30]
    index = build(name, kind, metric)
    assert index.norms.n_bytes == (kind == "byte")
    assert index.bytes_per_vector == index.faiss_index.sa_code_size() + index.norms.n_bytes
    index.remove(np.arange(0, 200, 3)).update([7], own[:1]).save(tmp_path / "idx")
    index.add(own[:1]).remove([len(own)])
    rows = decoded(index, own)
    rows[7] = decoded(index, own[:1])[0]
    expected = compared(metric, Q, rows)
    scanned = "FastScan" in type(innermost(index.faiss_index)).__name__  # FAISS rounds its scores to 8 bits of a table
    rounded = 0.05 if kind == "one" and scanned else 2e-3 if kind == "byte" else 1e-5
    for searched in (index, Index.load(tmp_path / "idx")):
        scores, ids = searched.search(Q, 10)
        scores = scores if metric == "l2" else -scores
        np.testing.assert_allclose(
            scores, np.take_along_axis(expected, ids, axis=1), rtol=2e-3 if kind == "byte" else 1e-7, atol=rounded
        )
        assert (np.diff(scores, axis=1) >= 0).all()
    alone = np.concatenate([index.search(q[None], 10)[1] for q in Q[:8]])
    assert (alone == ids[:8]).mean() > 0.98  # equal codes may stand in any order
    there = index.ids
    best = there[np.argsort(expected[:, there], axis=1, kind="stable")[:, :10]]
    assert recall_k_at_k(ids, best, 10) > 0.8  # candidates are found by FAISS's own scores


def test_one_norm_is_known_only_if_all_rows_have_it() -> None:
    several = UNIT * np.linspace(1, 1.2, len(UNIT))[:, None]
    for rows, norm in ((several, None), (UNIT + 1e4, None), (0 * UNIT, None), (UNIT, 1), (512 * UNIT, 512)):
        index = Index.build(rows.astype(np.float32), ProductQuantizer(4, 8, init="pca", max_iter=1, random_state=0))
        assert (index.norms is None) if norm is None else index.norms.levels[0] == pytest.approx(norm), rows[:2]
    assert Norms.shared(np.zeros((3, 2))) is None  # nothing can be divided by it


def test_the_one_norm_is_forgotten_with_a_row_of_another(tmp_path: Path) -> None:
    own, asked = SETS["one"]
    index = Index.build(own[:100], fitted("product", "one")).update([3], own[200:201])
    with pytest.raises(ValueError, match="not in the index"):
        index.update([10**6], 2 * own[:1])
    assert index.norms.levels[0] == 1
    index.add(2 * own[:1])  # from here on FAISS's own scores hold
    index.save(tmp_path / "idx")
    for one in (index, Index.load(tmp_path / "idx")):
        assert one.norms is None
        np.testing.assert_allclose(one.search(asked, 7)[0], index.faiss_index.search(asked, 7)[0], atol=1e-6)


def test_codes_learned_for_the_order_of_the_rows_keep_it() -> None:
    """Of 8,000 sentences they lost .008 of 10 neighbours at another length."""
    own = SETS["one"][0]
    for trained, metric in (("ip", "cosine"), ("l2", "l2")):
        quantizer = ResidualQuantizer(2, 16, metric=trained, known=True, max_iter=1, random_state=0)
        assert Index.build(own[:300], quantizer, metric=metric).norms is None


def test_an_export_sees_rows_at_their_norm() -> None:
    rows = Source(build("product, lists", "one", "cosine")).as_searched(np.arange(50))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_codes_finer_than_the_norms_differ_keep_these() -> None:
    """Half precision of SIFT, whose lengths differ by .1 %, once lost neighbours at one length."""
    own, asked = SETS["one"]
    rows = (512 * own * (1 + 0.002 * np.sin(np.arange(len(own)))[:, None])).astype(np.float16).astype(np.float32)
    assert Norms.shared(rows) is not None
    exact = Index.build(rows).search(512 * asked, 10)[1]
    for bits, least in ((8, 0.9), (16, 1.0)):
        index = Index.build(rows, ScalarQuantizer(bits))
        assert index.norms is None
        kept = recall_k_at_k(index.search(512 * asked, 10)[1], exact, 10)
        assert kept >= least, (bits, kept)


def test_norms_are_refused_where_they_rank_nothing() -> None:
    made = ((fitted("product"), "cosine"), (None, "l2"), (ITQ(8, random_state=0), "hamming"))
    calls = (partial(Index.build, ROWS, quantizer, metric=metric, norms=True) for quantizer, metric in made)
    match = r"norms are for codes by metric 'l2' or 'ip'|fitted on others"
    each_refused((call, ValueError, match) for call in calls)


def test_indexes_of_other_norms_cannot_be_merged() -> None:
    index, far = (Index.build(scale * ROWS, fitted("product"), norms=True) for scale in (1, 2))
    plain = Index.build(ROWS, fitted("product"))
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
    index = Index.build(ROWS, fitted("product"), norms=True)
    index.recode(fitted("product, lists"), ROWS)
    expected = Index.build(ROWS, fitted("product, lists"), norms=index.norms)
    np.testing.assert_allclose(index.search(QUERIES, 5)[0], expected.search(QUERIES, 5)[0], rtol=1e-5)
