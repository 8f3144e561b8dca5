"""A byte for each row's norm: taken where it finds more, in step with the rows, never lost."""

from functools import cache
from pathlib import Path

import faiss
import numpy as np
import pytest

from nearkin import ITQ, Index, ProductQuantizer
from nearkin.contracts import Quantizer
from nearkin.linalg.norms import POWER, Norms
from nearkin.metrics import recall_k_at_k
from nearkin.quantization import ProductResidualQuantizer, ResidualQuantizer, ScalarQuantizer

rng = np.random.default_rng(3)
# rows of heavy tails, and so of different norms, about a mean that is not 0
X = (rng.standard_t(3, size=(1200, 48)) / np.arange(1, 49) ** 0.4 + 0.2).astype(np.float32)
ROWS, QUERIES = X[200:], X[:200]
CODES = {
    "product": ProductQuantizer(6, 64, max_iter=2, random_state=0),
    "product, padded": ProductQuantizer(5, 64, max_iter=2, random_state=0),
    "product, lists": ProductQuantizer(6, 64, n_lists=5, max_iter=2, random_state=0),
    "product, 4 bits": ProductQuantizer(12, 16, max_iter=2, random_state=0),
    "product, 4 bits, lists": ProductQuantizer(12, 16, n_lists=5, max_iter=2, random_state=0),
    "residual": ResidualQuantizer(4, 16, max_iter=3, random_state=0),
    "residual, norms": ResidualQuantizer(4, 16, norm_bits=8, max_iter=3, random_state=0),
    "product residual, lists": ProductResidualQuantizer(2, 2, 16, n_lists=5, max_iter=1, random_state=0),
    "scalar": ScalarQuantizer(4),
}


@cache
def fitted(name: str) -> Quantizer:
    return CODES[name].fit(ROWS)


def decoded(index: Index, rows: np.ndarray) -> np.ndarray:
    """Rows (n, 49) by their definition: decoded, lengthened towards the nearest level of |x - centre|, and the rest of
    it in a column more (the slow twin)."""
    centre, levels = index.norms.centre.astype(np.float64), index.norms.levels
    centred = index.quantizer.decode(index.quantizer.encode(rows)) - centre
    true = np.linalg.norm(rows - centre, axis=1)
    wanted = levels[np.abs(levels - true[:, None]).argmin(axis=1)]
    centred *= ((wanted / np.linalg.norm(centred, axis=1)) ** POWER)[:, None]
    rest = np.maximum(wanted.astype(np.float64) ** 2 - np.square(centred).sum(axis=1), 0)
    return np.column_stack([centre + centred, np.sqrt(rest)])


@pytest.mark.parametrize("metric", ["l2", "ip"])
@pytest.mark.parametrize("name", CODES)
def test_scores_are_those_of_decoded_rows_at_their_norm(name: str, metric: str, tmp_path: Path) -> None:
    """After rows came and went, and after saving."""
    index = Index.build(ROWS, fitted(name), metric=metric, n_probe=5, norms=True)
    assert index.bytes_per_vector == index.faiss_index.sa_code_size() + 1
    index.remove(np.arange(0, 200, 3)).update([7], ROWS[:1]).save(tmp_path / "idx")
    index.add(ROWS[:1]).remove([len(ROWS)])
    rows = decoded(index, ROWS)
    rows[7] = decoded(index, ROWS[:1])[0]
    for searched in (index, Index.load(tmp_path / "idx")):
        scores, ids = searched.search(QUERIES[:60], 5)
        asked, found = np.pad(QUERIES[:60], ((0, 0), (0, 1)))[:, None], rows[ids]
        expected = np.square(asked - found).sum(axis=2) if metric == "l2" else (asked * found).sum(axis=2)
        np.testing.assert_allclose(scores, expected, rtol=2e-3, atol=2e-3)
        np.testing.assert_allclose(searched.search(QUERIES[:1], 5)[0][0], scores[0], rtol=1e-3, atol=1e-3)


def test_a_byte_of_norm_finds_more_neighbours_than_a_byte_more_of_centroids() -> None:
    codes = [ProductQuantizer(count, max_iter=4, random_state=0).fit(ROWS) for count in (9, 8)]
    for metric in ("l2", "ip"):
        exact = Index.build(ROWS, metric=metric).search(QUERIES, 10)[1]
        more, norms = (
            Index.build(ROWS, code, metric=metric, norms=norms)
            for code, norms in zip(codes, (False, True), strict=True)
        )
        assert more.bytes_per_vector == norms.bytes_per_vector
        found = [recall_k_at_k(index.search(QUERIES, 10)[1], exact, 10) for index in (more, norms)]
        assert found[1] > found[0] + 0.02, (metric, found)


def test_plain_faiss_searches_the_folder_without_the_norms(tmp_path: Path) -> None:
    index = Index.build(ROWS, fitted("product"), norms=True)
    index.save(tmp_path / "idx")
    plain = faiss.read_index(str(tmp_path / "idx" / "index.faiss"))
    exact = Index.build(ROWS).search(QUERIES, 10)[1]
    found, by_faiss = index.search(QUERIES, 10)[1], plain.search(QUERIES, 10)[1]
    np.testing.assert_array_equal(by_faiss, Index.build(ROWS, fitted("product")).search(QUERIES, 10)[1])
    assert recall_k_at_k(found, exact, 10) > recall_k_at_k(by_faiss, exact, 10) > 0.1


def test_all_rows_are_encoded_again_with_their_norms() -> None:
    index = Index.build(ROWS, fitted("product"), norms=True)
    index.recode(fitted("product, lists"), ROWS)
    expected = Index.build(ROWS, fitted("product, lists"), norms=index.norms)
    np.testing.assert_allclose(index.search(QUERIES, 5)[0], expected.search(QUERIES, 5)[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("quantizer", "metric"), [(fitted("product"), "cosine"), (None, "l2"), (ITQ(8, random_state=0), "hamming")]
)
def test_norms_are_refused_where_they_rank_nothing(quantizer: Quantizer | None, metric: str) -> None:
    with pytest.raises(ValueError, match=r"norms are for codes by metric 'l2' or 'ip'|fitted on rows that are not"):
        Index.build(ROWS, quantizer, metric=metric, norms=True)


def test_indexes_of_other_norms_cannot_be_merged() -> None:
    index, far = (Index.build(scale * ROWS, fitted("product"), norms=True) for scale in (1, 2))
    plain = Index.build(ROWS, fitted("product"))
    for one, other in ((index, far), (index, plain), (plain, index)):
        with pytest.raises(ValueError, match="different quantizers"):
            one.merge(other)
    assert len(index) == len(index.norms.codes) == len(ROWS)


@pytest.mark.parametrize("rows", [0 * X[:5], X[:1], 1e12 * X, 1e-15 * X, X + 1e4, np.repeat(X[:1], 9, axis=0)])
def test_norms_of_hard_rows_are_finite_and_near(rows: np.ndarray) -> None:
    rows = rows.astype(np.float32)
    norms = Norms.learned(rows).with_rows(rows)
    true = np.linalg.norm(rows.astype(np.float64) - norms.centre, axis=1)
    np.testing.assert_allclose(np.median(norms.of(slice(None))), np.median(true), rtol=0.05, atol=1e-3 * true.max())
    np.testing.assert_array_equal(np.concatenate([norms.named(row[None]) for row in rows[:30]]), norms.codes[:30])


@pytest.mark.parametrize(
    "change",
    [
        {"codes": np.zeros(4, np.uint8)}, {"codes": np.zeros(5, np.int64)}, {"levels": np.zeros(9, np.float32)},
        {"centre": np.zeros(3, np.float32)}, {"centre": np.full(2, np.nan)}, {"levels": np.full(256, -1.0)},
    ],
)  # fmt: skip
def test_arrays_of_other_norms_are_refused(change: dict[str, np.ndarray]) -> None:
    whole = {"centre": np.zeros(2), "levels": np.arange(256.0), "codes": np.zeros(5, np.uint8)}
    assert len(Norms.checked(**whole, shape=(5, 2)).of(slice(None))) == 5
    with pytest.raises(ValueError, match="cannot be of 5 rows"):
        Norms.checked(**whole | change, shape=(5, 2))
