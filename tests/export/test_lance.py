"""Real Lance, with our rotation, centroids and codebooks."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.export import RecallTooLowError, export_index
from nearkin.export.lance import Lance, LanceTable
from nearkin.index import Index
from tests.covering import each

lance = pytest.importorskip("lance", reason="pip install 'nearkin[lance]'")


def agreement(table: LanceTable, index: Index, Q: np.ndarray, k: int = 10) -> float:
    return nk.metrics.recall_k_at_k(table.search(Q, k)[1], index.search(Q, k)[1], k)


@each(
    ("kind", "metric", "keep"), [("pq", "l2", False), ("pq", "ip", True), ("pq", "cosine", False), ("ivf", "l2", True)]
)
def test_lance_finds_what_the_index_finds(kind, metric, keep, X, Q, request, tmp_path: Path) -> None:
    X, Q, quantizer = X[:1000], Q[:20], request.getfixturevalue(kind)
    if metric == "cosine":
        rows = X / np.linalg.norm(X, axis=1, keepdims=True)
        quantizer = nk.ProductQuantizer(4, 256, random_state=0, max_iter=2, init="pca").fit(rows)
    index = Index.build(X, quantizer, metric=metric, keep_vectors=keep)
    record = export_index(index, Lance(tmp_path / "out"))
    assert record["exact_vectors"] == keep
    table = LanceTable(tmp_path / "out")
    index.norms = None  # Lance compares rounded rows
    assert agreement(table, index, Q) > 0.93  # ties apart, which the self-check counts
    scores = table.search(Q, 1)[0]
    np.testing.assert_allclose(scores, index.search(Q, 1)[0], rtol=1e-3, atol=1e-3)


def test_the_codes_are_ours_and_not_lances_own(X, ivf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_INCLUDE_VECTOR_CENTROIDS", "true")
    export_index(Index.build(X[:1000], ivf), Lance(tmp_path / "out"))
    stats = LanceTable(tmp_path / "out").dataset.stats.index_stats("vector_idx")["indices"][0]
    np.testing.assert_allclose(stats["centroids"], ivf.coarse_centroids_ @ ivf.rotation_, rtol=1e-3, atol=1e-3)


def test_oversampling_ranks_by_the_exact_vectors(X, Q, ivf, tmp_path: Path) -> None:
    X, Q = X[:1000], Q[:20]
    index = Index.build(X, ivf, keep_vectors=True, n_probe=8)
    export_index(index, Lance(tmp_path / "out"))
    exact = Index.build(X).search(Q, 10)[1]
    table = LanceTable(tmp_path / "out")
    coarse, fine = (nk.metrics.recall_k_at_k(table.search(Q, 10, oversample=o)[1], exact, 10) for o in (None, 8))
    assert fine > max(0.95, coarse), (fine, coarse)


def test_four_bits_odd_numbers_of_centroids_and_text_ids(X, Q, tmp_path: Path) -> None:
    X, names = X[:600], np.array([f"row {i}" for i in range(600)])
    for centroids in (16, 13, 200):
        quantizer = nk.ProductQuantizer(4, centroids, random_state=0, max_iter=2, init="pca").fit(X)
        index = Index.build(X, quantizer, ids=names)
        record = export_index(index, Lance(tmp_path / "out", overwrite=True))
        assert record["recall"] >= 0.95, centroids
        assert LanceTable(tmp_path / "out").search(Q[:1], 1)[1][0, 0].startswith("row ")


def test_a_failed_check_leaves_what_was_there(X, Q, pq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index.build(X[:600], pq)
    export_index(index, Lance(tmp_path / "out"))
    before = LanceTable(tmp_path / "out").search(Q)[1]
    search = LanceTable.search
    monkeypatch.setattr(LanceTable, "search", lambda self, Q, k: (None, search(self, Q, k)[1] * 0 + 5))
    with pytest.raises(RecallTooLowError, match=r"recall@10 0\.\d+ .*FAILED; nothing was published"):
        export_index(Index.build(X[:500], pq), Lance(tmp_path / "out", overwrite=True))
    monkeypatch.undo()
    np.testing.assert_array_equal(LanceTable(tmp_path / "out").search(Q)[1], before)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_lance_cannot_hold_is_refused_before_any_work(bits, X, ivf, tmp_path: Path) -> None:
    normed = Index.build(X, nk.ProductQuantizer(4, max_iter=1, random_state=0), norms=True)
    for index, match in ((bits, "product codes"), (Index.build(X, ivf, metric="ip"), "for 'ip'"), (normed, "norms")):
        with pytest.raises(ValueError, match=match):
            export_index(index, Lance(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
