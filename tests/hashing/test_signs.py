"""Packed bits as text encoders' APIs give them: read in every form, searched by the Hamming distance."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.hashing import unpack_signs
from tests.cli.conftest import run_json
from tests.covering import each

X, Q = (np.random.default_rng(seed).normal(size=(n, 24)).astype(np.float32) for seed, n in ((0, 500), (1, 30)))


def quantized(embeddings: np.ndarray, precision: str) -> np.ndarray:
    """As `sentence_transformers.util.quantize_embeddings` writes these precisions; the last one is FAISS's order."""
    if precision == "ubinary-little":
        return np.packbits(embeddings > 0, axis=1, bitorder="little")
    packed = np.packbits(embeddings > 0).reshape(len(embeddings), -1)
    return packed if precision == "ubinary" else (packed - 128).astype(np.int8)


DISTANCES = ((Q[:, None] > 0) != (X[None] > 0)).sum(axis=2)
PRECISIONS = ("ubinary", "binary", "ubinary-little")


@each("precision", PRECISIONS)
def test_packed_bits_are_searched_by_their_hamming_distance(tmp_path: Path, precision: str) -> None:
    order = "little" if precision == "ubinary-little" else "big"
    unpacked = unpack_signs(quantized(X, precision), 24, np.int8, order=order)
    np.testing.assert_array_equal(unpacked, np.where(X > 0, 1, -1))
    np.save(tmp_path / "X.npy", unpacked)
    np.save(tmp_path / "Q.npy", unpack_signs(quantized(Q, "binary"), 24, np.int8, order="big"))
    made = run_json("compress", f"{tmp_path}/X.npy", "--method", "signs", "--out", tmp_path / "idx")
    assert (made["metric"], made["bytes_per_vector"]) == ("hamming", 3)
    hits = run_json("search", tmp_path / "idx", f"{tmp_path}/Q.npy", "-k", 10)["hits"]
    scores, ids = (np.array([hit[name] for hit in hits]) for name in ("scores", "ids"))
    np.testing.assert_array_equal(scores, np.sort(DISTANCES, axis=1)[:, :10])
    np.testing.assert_array_equal(scores, np.take_along_axis(DISTANCES, ids, axis=1))
    judged = run_json("evaluate", tmp_path / "idx", f"{tmp_path}/Q.npy", "--base", f"{tmp_path}/X.npy")
    assert judged["10-recall@10"] == 1


def test_signs_of_embeddings_are_the_same_bits_and_queries_may_stay_real() -> None:
    index = nk.Index.build(X, nk.Signs(24), metric="hamming")
    np.testing.assert_array_equal(index.quantizer.encode(X), quantized(X, "ubinary-little"))
    np.testing.assert_array_equal(index.search(Q, 10)[0], np.sort(DISTANCES, axis=1)[:, :10])
    products = Q @ np.where(X > 0, 1, -1).T  # sentence-transformers' rescoring by unpacked bits, up to its offset
    np.testing.assert_allclose(index.search(Q, 10, asymmetric=True)[0], -np.sort(-products, axis=1)[:, :10], rtol=1e-4)
    assert nk.Signs(16).fit(X).encode(X).shape == (500, 2)
    assert nk.Signs(1).fit(X).encode(X).shape == (500, 1)
    with pytest.raises(ValueError, match="n_bits is 25, and X has n_features = 24"):
        nk.Signs(25).fit(X)
