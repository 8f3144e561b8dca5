"""The best codec at a size: never below the other candidates, in the time given; and the table that it chooses from."""

import re

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs.check import of_codes
from nearkin.linalg.orthonormal import unit_rows
from nearkin.metrics import recall_k_at_k
from nearkin.metrics.trial import Trial
from nearkin.quantization import AxisQuantizer, best
from nearkin.quantization.best import (
    CODECS,
    FEWEST,
    MINUTE,
    TRAINED,
    Screening,
    Size,
    _lengthened,
    _trained,
    candidates,
    fitted_codec,
)
from tests.covering import each
from tests.refusals import each_refused

pytestmark = pytest.mark.usefixtures("few_rounds")  # what all steps give, `test_order.py` tests


@pytest.fixture(scope="module")
def heavy() -> np.ndarray:
    """Vectors of heavy tails, and so of different norms, about a mean that is not 0."""
    rng = np.random.default_rng(3)
    return (rng.standard_t(3, size=(1500, 64)) / np.arange(1, 65) ** 0.4 + 0.2).astype(np.float32)


def test_the_winner_is_fitted_and_leads_the_table(vectors):
    heard = []
    found = best(vectors[0][:600], 4, random_state=0, callback=lambda step, record: heard.append(record["candidate"]))
    names = [record["candidate"] for record in found.trials]
    assert sorted(heard) == sorted(names)
    assert {"axes", "product", "none", "residual"} <= set(names)
    others = [record["value"] for record in found.trials[1:]]
    assert others == sorted(others, reverse=True)
    assert found.trials[0]["won"]
    assert others[-1] < found.trials[0]["value"] > others[0] - 0.05
    assert all(record["bytes"] == 4 for record in found.trials)
    assert found.quantizer.encode(vectors[1]).shape == (1000, 4)
    index = nk.Index.build(vectors[1], found.quantizer)
    assert index.search(vectors[1][:5], 3)[1].shape == (5, 3)


def test_a_full_fit_takes_as_many_rows_as_the_seconds_allow():
    """A minute is never too long, nor three times what product codes take."""
    size = Size(8)
    each = CODECS["residual"].seconds(size, 1, 0, 64)
    encoding = CODECS["residual"].seconds(size, 0, 50_000, 64)
    for seconds, encoded, expected in (
        (20_000.5 * each, 0, 10_000),
        (9_000.5 * each, 0, 9_000),
        (9_000.5 * each, 50_000, 0),
        (9_000.5 * each + encoding, 50_000, 9_000),
        (8_000 * each, 0, 0),  # fewer than twice those of a short fit
    ):
        assert _trained("residual", size, (10_000, 64), encoded, seconds, known=False) == expected
    assert _trained("residual", size, (10_000, 64), 0, 9_000.5 * each, known=True) == 0  # all or none
    for n, encoded in ((TRAINED, TRAINED), (TRAINED, 10**9)):
        product, sums = (CODECS[name].seconds(size, n, encoded, 64) for name in ("product", "product-residual"))
        assert (_trained("product-residual", size, (n, 64), encoded, None, known=False) == n) == (
            sums <= max(MINUTE, 3 * product)
        )


def test_given_queries_judge(vectors):
    X, Q = vectors[0][:900], vectors[1][:100]
    trials = [best(X, 2, asked, seconds=0, random_state=0).trials for asked in (None, Q, Q + 1)]
    assert [record["candidate"] for one in trials for record in one] == ["product"] * 3  # no other ends in time
    assert len({one[0]["value"] for one in trials}) == 3


def test_bad_arguments(vectors):
    X = vectors[0][:900]
    each_refused(
        [
            (lambda: best(X, 0), ValueError, "n_bytes"),
            (lambda: best(X, 2.5), TypeError, "n_bytes"),
            (lambda: best(X, 2, None, -1), ValueError, "seconds"),
            (lambda: best(X, 4, n_vectors=899), ValueError, "n_vectors is 899"),
            (lambda: best(X, 2, X[:, :31]), ValueError, "queries has 31 columns"),
            (lambda: best(X, 4, metric="hamming"), ValueError, "metric is 'hamming'"),
            (lambda: CODECS["none"].unfitted(Size(4, 64)), ValueError, "give a multiple of 3"),
            (lambda: CODECS["itq"].unfitted(Size(4, n_lists=4)), ValueError, "n_lists is for product and residual"),
            (lambda: CODECS["int8"].unfitted(Size(4, 16)), ValueError, "n_centroids is for product and residual"),
            (lambda: CODECS["residual"].unfitted(Size(40)), ValueError, "n_bytes is 40"),
        ]
    )


@each(("n_rows", "n_bytes"), [(1, 3), (2, 3), (17, 7), (FEWEST - 1, 3)])
def test_few_rows_get_axis_codes_with_a_warning(rng, n_rows, n_bytes):
    """Product codes of five vectors found .37 of those added later, in silence."""
    X = rng.normal(size=(n_rows, 4)).astype(np.float32)
    with pytest.warns(UserWarning, match=f"trained on {n_rows} vector") as warned:
        index = nk.Index.build(X, n_bytes)
    assert len(warned) == 1
    assert index.bytes_per_vector <= min(n_bytes, 4)
    assert index.search(X[:1], 1)[1] == [[0]]


def test_few_columns_are_half_floats_where_these_are_exact_enough(rng):
    X = rng.normal(size=(300, 3))
    for scale, far, half in ((1, 0, True), (1, 1e4, False), (1e5, 0, False), (1e-6, 0, False), (0, 0, True)):
        index = nk.Index.build((scale * X + far).astype(np.float32), 16)
        assert (index.bytes_per_vector == 6) == half, (scale, far)
        assert index.bytes_per_vector <= 6
    assert nk.Index.build(X.astype(np.float32), 5).bytes_per_vector == 3
    for wrong in (2.0, "2", [2], nk.ProductQuantizer):
        with pytest.raises(TypeError, match=r"n_bytes is 2\.0|quantizer is .*; give bytes a vector"):
            nk.Index.build(X, wrong)


def test_a_far_row_is_named_once(heavy):
    X = np.where(np.arange(1500)[:, None] == 700, np.float32(1e6) * heavy, heavy)
    with pytest.warns(UserWarning, match="vector 700 lies") as heard:
        best(X[:1100, :8], 3, seconds=0, random_state=0)
    assert len(heard) == 1


@each("metric", ["l2", "ip", "cosine"])
def test_axis_codes_as_called_hold_the_norm_where_that_finds_more(heavy, metric):
    """`AxisQuantizer(24)` of GIST lost .098 of ten neighbours without it."""
    rows, asked = heavy[300:1200], heavy[:200]
    exact = nk.Index.build(rows, metric=metric).search(asked, 10)[1]
    as_called, without = (nk.Index.build(rows, AxisQuantizer(8), metric=metric, norms=n) for n in (None, False))
    assert as_called.bytes_per_vector == without.bytes_per_vector == 8
    assert as_called.quantizer.n_bytes == (8 if metric == "cosine" else 7)
    found = [recall_k_at_k(index.search(asked, 10)[1], exact, 10) for index in (as_called, without)]
    assert found[0] >= found[1] + (0.02 if metric != "cosine" else 0), found
    assert without.quantizer.n_bytes == nk.Index.build(rows[:300], AxisQuantizer(8).fit(heavy)).quantizer.n_bytes == 8


def test_rows_that_tie_are_not_lost() -> None:
    """Two columns of three values fit a centroid each: lossless, and once behind a code that kept .90 by row number."""
    X = np.random.default_rng(0).integers(0, 3, size=(600, 8)).astype(np.float32)
    found = best(X, 4, random_state=0)
    assert {record["candidate"]: record["value"] for record in found.trials}["none"] == 1
    np.testing.assert_allclose(found.quantizer.decode(found.quantizer.encode(X)), X, atol=1e-5)


@each(
    ("metric", "n_rows", "expected"),
    [("l2", None, ("l2", True)), ("l2", 10**6, ("l2", False)), ("ip", None, ("ip", False)), ("cosine", 900, ("l2", 1))],
)
def test_codes_are_learned_for_what_searches_them(metric, n_rows, expected, vectors):
    how = {"metric": metric, "n_vectors": n_rows, "methods": ["residual"], "random_state": 0}
    found = best(vectors[0][:900], 2, **how).quantizer
    assert (found.metric, found.known) == expected
    if metric == "cosine":  # of rows about a far middle codes trained for products found .35 of .95
        far = unit_rows(vectors[0][:900] + 300)
        codes = best(far, 4, **how).quantizer
        one, other = (nk.Index.build(far, codes, metric=by).search(far[:50])[1] for by in ("cosine", "l2"))
        assert np.array_equal(one, other)
        assert (shares := of_codes(nk.Index.build(far, codes, metric="cosine")))["search"] == shares["codes"]


def test_rows_that_judge_are_mixed_as_those_of_the_index(rng):
    X = np.arange(2000, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
    for n_rows, known in ((2000, 1.0), (4000, 0.5), (200_000, 0.01), (10**9, 0.0)):
        screening = Screening.of(X, None, n_rows, "l2", "l2", rng)
        parts = screening.train, screening.held.rows, screening.held.queries
        learned, judged, asked = (set(part[:, 0].tolist()) for part in parts)
        assert not asked & (learned | judged), known
        assert len(learned & judged) == pytest.approx(known * len(judged), abs=1)
        assert len(learned) >= 1100, known
        assert len(judged) >= 370, known


@each(("metric", "name"), [("l2", "axes-norms"), *((metric, "product") for metric in ("l2", "ip", "cosine"))])
def test_recall_is_that_of_the_index(rng, metric, name):
    """Rows of unlike lengths and queries unlike the rows: neighbours by distance are others than by inner product."""
    X = (rng.normal(size=(800, 16)) * rng.gamma(2, size=(800, 1))).astype(np.float32)
    if metric == "cosine":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    screening = Screening.of(X, rng.normal(size=(60, 16)) + 1, 800, metric, "l2" if metric == "l2" else "ip", rng)
    size, rows, asked = Size(4, metric=metric, random_state=0), screening.held.rows, screening.held.queries
    values, n_bytes = screening.recall(CODECS[name], size)
    quantizer, norms = fitted_codec(CODECS[name], size, screening.train, screening.given)
    index = nk.Index.build(rows, quantizer, metric=metric, norms=norms)
    found, own = index.search(asked, 10)[1], "l2" if metric == "l2" else "ip"
    # of equal codes the index finds the first
    assert values.mean() == pytest.approx(nk.metrics.knn_recall(found, rows, asked, own), abs=1e-2)
    assert bool(values.mean() > nk.metrics.knn_recall(found, rows, asked) + 0.1) is (metric == "ip")
    assert n_bytes == index.bytes_per_vector == 4


def test_sums_fill_the_bytes_and_the_cheapest_come_first():
    for n_bytes, names in (
        (1, []),
        (4, ["residual 4"]),
        (8, ["product-residual 4", "residual 8"]),
        (16, ["product-residual 4", "product-residual-long 8", "residual 16"]),
        (31, ["product-residual 5", "product-residual-long 10", "residual 31"]),
        (75, ["product-residual 3", "product-residual-long 5"]),
        (49, ["product-residual 4", "product-residual-long 7"]),
    ):
        chains = {name: CODECS[name].chain(Size(n_bytes)) for name in candidates(n_bytes, 128, norms=False)}
        assert [f"{name} {chain}" for name, chain in chains.items() if "residual" in name] == names
        assert [*chains.values()] == sorted(chains.values()), n_bytes
        assert any("-norms" in name for name in candidates(n_bytes, 128, norms=True)) == (n_bytes > 1), n_bytes


def screened(monkeypatch, recalls: dict[str, float]) -> None:
    """Replace the short fits by recalls for each of the queries."""

    def recall(screening, codec, size, **settings):
        return np.full(len(screening.held.queries), recalls.get(codec.name, 0.0)), 4

    monkeypatch.setattr(Screening, "recall", recall)


def test_a_codec_wins_only_if_its_full_fit_ends_in_time(monkeypatch, vectors):
    screened(monkeypatch, {"residual": 0.9, "product-residual": 0.7, "product": 0.5})
    X = vectors[0][:800]
    for name in ("residual", "product-residual", "product"):
        seconds = CODECS[name].seconds(Size(8), 1616, 800, X.shape[1])  # known rows take twice as long
        assert best(X, 8, seconds=seconds, random_state=0).trials[0]["candidate"] == name


def test_of_level_codes_the_longest_sum_wins():
    """Of sums for known vectors the longest one whose codebooks are not larger than the vectors."""
    for product, lead, n_known, name in (
        (0.6, 0.0, 0, "residual"),
        (0.61, 0.0, 9_999, "product"),
        (0.5, 0.009, 0, "residual"),
        (0.5, 0.011, 0, "product-residual"),
        (0.5, 0.011, 3_071, "product-residual"),
        (0.5, 0.011, 3_072, "residual"),  # two sets of 6 x 256 centroids
    ):
        trial = Trial[str]()
        for codec, value, cost in ("product", product, 1), ("product-residual", 0.6 + lead, 3), ("residual", 0.6, 6):
            trial.add(codec, np.full(50, value), cost)
        assert _lengthened(trial, Size(6), n_known) == name


def test_codes_with_norms_are_tried_where_rows_have_different_ones(vectors):
    X = vectors[0][:600]
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for rows, settings, expected in (
        (X, {"n_vectors": 10**6}, ["product-norms", "residual-norms"]),
        (X, {}, []),  # sums are trained for known rows by FAISS's own scores
        (unit, {"n_vectors": 10**6}, []),
        (X, {"n_vectors": 10**6, "metric": "cosine"}, []),
        (X, {"n_vectors": 10**6, "metric": "ip"}, ["product-norms", "residual-norms"]),
    ):
        found = best(rows, 3, random_state=0, **settings)
        names = [record["candidate"] for record in found.trials]
        assert sorted(name for name in names if name.endswith("-norms") and name[:4] != "axes") == expected, settings
        index = nk.Index.build(rows, found.quantizer, metric=settings.get("metric", "l2"), norms=found.norms)
        assert index.bytes_per_vector <= 3


@each("name", [name for name, codec in CODECS.items() if not codec.fits(Size(99), 3)])
def test_a_size_without_codes_names_the_most_bytes_that_have_some(name, rng):
    codec = CODECS[name]
    for d in (1, 3):
        X = rng.normal(size=(256, d)).astype(np.float32)
        with pytest.raises(ValueError, match=f"type n_bytes=|{name} has no codes for 1 column; leave out") as error:
            fitted_codec(codec, Size(99), X)
        for most in map(int, re.findall(r"type n_bytes=(\d+)", str(error.value))):
            fitted_codec(codec, Size(most, random_state=0), X, beam_size=1, max_iter=1)
            assert not any(codec.fits(Size(larger), d) for larger in range(most + 1, 99))


FIXED = {"int4": 8, "int6": 12, "int8": 16, "float16": 32}  # bytes of 16 columns: their size follows from d


@each("name", CODECS)
def test_every_codec_has_the_size_that_was_asked_for(name, rng):
    X = rng.normal(size=(300, 16)).astype(np.float32) * np.linspace(0.5, 2, 300, dtype=np.float32)[:, None]
    codec, asked = CODECS[name], 8 + name.endswith("-norms") if "residual" in name else 2
    small = {} if name in FIXED or "axes" in name or codec.metrics == ("hamming",) else {"n_centroids": 16}
    code, norms = fitted_codec(codec, Size(asked, metric=codec.metrics[0], random_state=0, **small), X)
    index = nk.Index.build(X, code, metric=codec.metrics[0], norms=norms)
    assert index.bytes_per_vector == FIXED.get(name, asked)


def test_unit_rows_have_the_codes_of_cosine_by_inner_product(vectors):
    X = vectors[0] / np.linalg.norm(vectors[0], axis=1, keepdims=True)
    one, other = (best(X, 3, metric=metric, random_state=0).quantizer.encode(X) for metric in ("ip", "cosine"))
    np.testing.assert_array_equal(one, other)
