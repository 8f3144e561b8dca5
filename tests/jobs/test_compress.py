"""A file to a saved index: the library's side of `nearkin compress`."""

import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import safetensors.torch
import torch

import nearkin as nk
from nearkin.data import open_vectors
from nearkin.jobs.compress import Choice, compress_file
from nearkin.quantization.best import Size
from tests.covering import each


@pytest.fixture
def X(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(500, 8)).astype(np.float32)


def test_a_race_is_refused_in_several_processes(tmp_path: Path, X: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would compare codes on its own rows, and the winners differ."""
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(sys.modules["nearkin.jobs.compress"], "current", lambda: SimpleNamespace(size=2, rank=0))
    with pytest.raises(ValueError, match=r"which is for one process; .* type method='product'"):
        compress_file(open_vectors(tmp_path / "X.npy"), Choice("best", Size(2)), tmp_path / "idx")


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Twice the rows: less than half of the added bytes more at the peak (NumPy's memory; FAISS holds the codes): rows
    are read in parts, but the candidates of the judged queries are decoded together."""
    monkeypatch.setattr("nearkin.data.vectors.CHUNK_BYTES", 100_000)
    monkeypatch.setattr(sys.modules["nearkin.jobs.compress"], "TRAINED", 500)
    peaks = []
    for n in (17_000, 34_000):  # more than a fast scan is tried on
        rows = torch.from_numpy(30 * np.random.default_rng(0).normal(size=(n, 16)).clip(-4, 4))
        safetensors.torch.save_file({"X": rows.to(getattr(torch, dtype))}, tmp_path / f"{n}.safetensors")
        file = open_vectors(tmp_path / f"{n}.safetensors")
        tracemalloc.start()
        choice = Choice("none", Size(4, 16, random_state=0))
        compress_file(file, choice, tmp_path / "idx", keep_vectors=True, overwrite=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 0.5 * 17_000 * 16 * 4, f"peaks of {peaks} bytes"


@each("metric", ["l2", "cosine"])
def test_queries_reach_the_fit_as_rows_do(
    tmp_path: Path, X: np.ndarray, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, fit = [], nk.ProductQuantizer.fit

    def spied(self: nk.ProductQuantizer, X: np.ndarray, **options: object) -> nk.ProductQuantizer:
        seen.append(options["queries"])
        return fit(self, X, **options)

    monkeypatch.setattr(nk.ProductQuantizer, "fit", spied)
    np.save(tmp_path / "X.npy", X)
    Q = 3 * X[:30]
    choice = Choice("cayley", Size(2, 16, metric=metric, random_state=0))
    compress_file(open_vectors(tmp_path / "X.npy"), choice, tmp_path / "idx", queries=Q)
    expected = Q / np.linalg.norm(Q, axis=1, keepdims=True) if metric == "cosine" else Q
    np.testing.assert_allclose(seen[0], expected, rtol=1e-5)


@each(
    ("method", "size", "queries", "words"),
    [
        ("itq", Size(1, metric="hamming"), slice(30), "trains in one way: leave queries out"),
        ("none", Size(1, 16), slice(30), "trains in one way"),
        ("product", Size(1, 16, n_lists=2), slice(30), "without lists"),
        ("product", Size(1, 16), slice(3), r"queries has 3 sample"),
        ("product", Size(1, 16), (slice(30), slice(4)), "queries"),
        ("product", Size(1, 16, metric="ip"), slice(30), "by distance"),
    ],
)
def test_queries_that_have_nothing_to_choose_from(
    tmp_path: Path, X: np.ndarray, method: str, size: Size, queries: object, words: str
) -> None:
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match=words):
        compress_file(open_vectors(tmp_path / "X.npy"), Choice(method, size), tmp_path / "idx", queries=X[queries])
    assert not (tmp_path / "idx").exists()
