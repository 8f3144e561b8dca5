"""The rounds of the additive codebooks, and FAISS's additive quantizers filled with them."""

import faiss
import numpy as np
import pytest

from nearkin.quantization import additive
from tests.covering import each


@pytest.fixture
def part(rng: np.random.Generator) -> tuple[np.ndarray, additive.Part]:
    Z = (rng.standard_normal((600, 6)) * [4, 3, 2, 1.5, 1, 0.6] * rng.gamma(2.0, 0.5, (600, 1))).astype(np.float32)
    Z -= Z.mean(axis=0)
    return Z, additive.Part.start(Z, np.diag([1.0, 1, 1, 1, 1, 1e-9]), False, (2, 16), seed=0)


def test_the_column_tells_how_far_a_row_is_from_its_code(part: tuple[np.ndarray, additive.Part]) -> None:
    Z, own = part
    own.add_column(Z)
    for _ in range(4):
        targets, codes = own.code(Z, 4, True)
        own.refit(targets, codes, 0.5, 0)
    codes = own.code(Z, 4, True)[1]
    codebooks, metric = own.settled()
    found = additive.decode(codes, codebooks)
    error = np.linalg.norm(Z - found[:, :-1], axis=1)
    assert np.corrcoef(found[:, -1], error)[0, 1] > 0.5
    assert found[:, -1].mean() == pytest.approx(np.sqrt(additive.DEFAULTS.share) * error.mean(), rel=0.2)
    np.testing.assert_allclose(error, own.errors(Z, codes), atol=1e-4)
    np.testing.assert_allclose(metric[:-1, :-1], own.turn)


def refit(X: np.ndarray, codes: np.ndarray, C: np.ndarray, shrink: float = 1.0) -> np.ndarray:
    error = np.square(X - additive.decode(codes, C)).mean(axis=0, dtype=np.float64)
    return additive.CodeSums.of(X, codes, C.shape[1]).refit(C, error, shrink)


@each("n", [40, 400])
def test_one_codebook_is_refitted_to_the_posterior_means_of_its_centroids(rng: np.random.Generator, n: int) -> None:
    """The formula term by term: the error's variance over n - K rows, a quarter of them at least."""
    K, w = 32, 3
    codes, C = rng.integers(0, K - 1, (n, 1)), (3 * rng.standard_normal((1, K, w))).astype(np.float32)
    X = (C[0][codes[:, 0]] + rng.standard_normal((n, w)) * [1.0, 0.1, 30.0]).astype(np.float32)
    error = (X - C[0][codes[:, 0]]).astype(float)
    for axis in range(w):
        noise = (error[:, axis] ** 2).sum() / max(n - K, n / 4)
        rows = [X[codes[:, 0] == k, axis].astype(float) for k in range(K)]
        spread = sum(len(of) / n * of.mean() ** 2 for of in rows if len(of)) - K / n * noise
        weight = noise / max(spread, 1e-3 * noise)
        found = refit(X, codes, C)[0][:, axis]
        for k, of in enumerate(rows):
            wanted = of.sum() / (len(of) + weight) if len(of) else C[0, k, axis]
            assert found[k] == pytest.approx(wanted, rel=1e-4, abs=1e-6)


def near(X: np.ndarray, rng: np.random.Generator) -> additive.Neighbourhoods:
    return additive.Neighbourhoods.of(X.astype(np.float32), X.shape[1], np.eye(X.shape[1], dtype=np.float32), rng)


def test_drawn_rows_have_the_covariance_of_the_rows_about_them(rng: np.random.Generator) -> None:
    """Two far groups of 9 rows: each row's neighbours are its group."""
    groups = np.repeat([[0.0, 0.0], [1000.0, 0.0]], 9, axis=0)
    X = groups + rng.standard_normal((18, 2)) * [1.0, 5.0]
    hood = near(X, rng)
    drawn = np.concatenate([hood.drawn(rng) for _ in range(400)]).astype(float)
    for group in (X[:9], X[9:]):
        own = drawn[np.abs(drawn[:, 0] - group[0, 0]) < 500]
        np.testing.assert_allclose(own.mean(axis=0), group.mean(axis=0), atol=0.35)
        # x and x' are two different rows of nine: what they have in common takes 2 / pi / 8 of the covariance
        wanted = np.cov(group.T, bias=True) * (1 - 2 / np.pi / 8)
        np.testing.assert_allclose(np.cov(own.T), wanted, rtol=0.1, atol=0.1 * np.abs(wanted).max())


def test_numbers_are_packed_as_faiss_packs_them(rng: np.random.Generator) -> None:
    X = rng.standard_normal((70, 6)).astype(np.float32)
    for bits in (3, 4, 8):
        codebooks = rng.standard_normal((3, 2**bits, 6)).astype(np.float32)
        quantizer = faiss.ResidualQuantizer(6, 3, bits)
        additive.fill(quantizer, codebooks[None], 4)
        numbers = additive.steady_numbers(X, codebooks[None], 4)
        np.testing.assert_array_equal(faiss.pack_bitstrings(numbers, bits), quantizer.compute_codes(X), f"{bits} bits")
        np.testing.assert_allclose(
            quantizer.decode(faiss.pack_bitstrings(numbers, bits)), additive.decode(numbers, codebooks), atol=1e-5
        )
        np.testing.assert_array_equal(numbers, additive.encode(X, codebooks, 4), f"{bits} bits")


def test_rows_coded_in_parts_and_by_buckets_get_the_codes_of_a_whole_search(rng: np.random.Generator) -> None:
    """FAISS's search of all rows at once, which keeps the best of all sums, is the slow twin."""
    X = rng.standard_normal((1100, 12)).astype(np.float32)
    codebooks = rng.standard_normal((4, 64, 12)).astype(np.float32)
    for beam, same in ((2, 1.0), (16, 0.9)):  # buckets lose one of the 16 best now and then
        whole = faiss.ResidualQuantizer(12, 4, 6)
        additive.fill(whole, codebooks[None], beam)
        whole.approx_topk_mode = faiss.EXACT_TOPK
        exact = faiss.unpack_bitstrings(whole.compute_codes(X), 4, 6)
        found = additive.encode(X, codebooks, beam)
        assert (found == exact).all(axis=1).mean() >= same
        errors = [np.square(X - additive.decode(codes, codebooks)).sum() for codes in (found, exact)]
        assert errors[0] < 1.002 * errors[1]


def test_the_moment_of_queries_is_a_mean(rng: np.random.Generator) -> None:
    """As many queries again weigh as much: the squares of two queries by hand."""
    Q = np.array([[1, 2], [3, 0]], np.float32)
    for queries in (Q, np.repeat(Q, 5, axis=0)):
        np.testing.assert_allclose(additive.query_moment("ip", rng.normal(size=(9, 2)), queries), [[5, 1], [1, 2]])


def test_rows_that_are_coded_exactly_have_a_column_of_errors_too() -> None:
    """Their errors are zero: whatever the column weighs, it must be there."""
    books = np.array([[[0, 0], [4, 0]], [[0, 0], [0, 2]]], np.float32)
    part = additive.Part(np.eye(2, dtype=np.float32), books, spread=1.0)
    Z = np.array([[0, 0], [4, 0], [0, 2], [4, 2]], np.float32)
    part.add_column(Z)
    assert part.column > 0
    assert part.reach == 2
    np.testing.assert_array_equal(part.code(Z, 4, False)[1], [[0, 0], [1, 0], [0, 1], [1, 1]])


def test_a_start_finds_far_clusters() -> None:
    """Random first centroids, of which a start of one codebook makes do, miss some of them."""
    rng = np.random.default_rng(3)
    X = (4 * rng.normal(size=(50, 16))[rng.integers(50, size=2_000)] + rng.normal(size=(2_000, 16))).astype(np.float32)
    random, found = (
        np.square(X - additive.decode(additive.encode(X, books, 1), books)).sum(axis=1).mean()
        for books in (additive.start(X, 1, 64, 0), additive.start(X, 3, 64, 0)[:1])
    )
    assert found < 18 < 0.8 * random, (found, random)  # 16 about the clusters' middles
    equal = additive.start(np.ones((300, 4), np.float32), 2, 16, 0)
    np.testing.assert_allclose(equal[0, 0] + equal[1, 0], 1, atol=0.01)
