"""The judge: ties count, repetitions and strangers do not, and a mirror of the index has recall 1."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.data import files
from nearkin.export import Source, export_index, make_target
from nearkin.export.target import self_check
from nearkin.index import Index
from nearkin.index.faiss_index import inverted_file


@pytest.fixture(params=["bits", "pq", "ivf", "exact", "cosine"])
def source(request, X, bits) -> Source:
    if request.param == "bits":
        return Source(bits)
    if request.param in ("exact", "cosine"):
        return Source(Index.build(X, metric="l2" if request.param == "exact" else "cosine"))
    return Source(Index.build(X, request.getfixturevalue(request.param)))


def nearest(source: Source, asked: np.ndarray, k: int) -> np.ndarray:
    return source.index.faiss_index.search(asked, k)[1]


def test_the_index_agrees_with_itself(source, Q) -> None:
    def own(asked, k):
        return source.ids()[nearest(source, asked, k)]

    assert self_check(source, own, 1.0).recall == 1
    assert self_check(source, own, 1.0, queries=Q, k=3).passed


def test_wrong_repeated_unknown_and_missing_neighbours_are_misses(source) -> None:
    def answers(change):
        return self_check(source, lambda asked, k: change(nearest(source, asked, k)), 0.5).recall

    assert answers(lambda ids: np.where(np.arange(10) < 5, ids, -1)) == pytest.approx(0.5)
    assert answers(lambda ids: np.where(np.arange(10) < 5, ids, 10**9)) == pytest.approx(0.5)
    assert answers(lambda ids: np.repeat(ids[:, :1], 10, axis=1)) == pytest.approx(0.1)
    assert answers(lambda ids: ids[:, :3]) == pytest.approx(0.3)
    assert answers(lambda ids: (ids + 1) % len(source)) < 0.5


def test_equally_near_codes_may_be_exchanged(hasher) -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 16)), 50, axis=0).astype(np.float32)
    source = Source(Index.build(X, hasher, metric="hamming"))
    twins = self_check(source, lambda asked, k: nearest(source, asked, k) // 50 * 50 + np.arange(k), 1.0)
    assert twins.recall == 1, twins


def test_slow_twin_of_the_distances(source, Q) -> None:
    asked = source.engine_queries(Q[:3])
    positions = np.array([[0, 5, -1]] * 3)
    if inverted_file(source.index.faiss_index) is not None:
        inverted_file(source.index.faiss_index).make_direct_map()
    far = source.distances(asked, positions)
    for i in range(3):
        for j, position in enumerate([0, 5]):
            if source.n_bits is not None:
                expected = sum(int(a ^ b).bit_count() for a, b in zip(asked[i], source.codes[position], strict=True))
            else:
                row = source.index.faiss_index.reconstruct(position)
                l2 = source.index.metric == "l2"
                expected = ((row - asked[i]) ** 2).sum() if l2 else -(row @ asked[i])
            assert far[i, j] == pytest.approx(expected, rel=1e-4, abs=1e-4)
    assert np.isinf(far[:, 2]).all()


def test_the_fingerprint_names_the_contents(bits, X, hasher) -> None:
    def of(**more: object) -> str:
        return Source(Index.build(X[:300], hasher, metric="hamming", **more)).fingerprint()

    assert of() == of()
    assert len({of(), of(ids=np.arange(300) + 1), of(keep_vectors=True), Source(bits).fingerprint()}) == 4


def test_an_index_without_rows_and_targets_without_options(hasher, tmp_path) -> None:
    with pytest.raises(ValueError, match="the index has no vectors"):
        Source(Index.empty(16, hasher, "hamming"))
    with pytest.raises(ValueError, match="recall_target is 2"):
        export_index(Index.build(np.eye(3)), make_target("lance", out=tmp_path / "x"), recall_target=2)


def test_a_missing_package_says_what_to_install(monkeypatch, bits, tmp_path) -> None:
    pgvector, lance = make_target("pgvector"), make_target("lance", out=tmp_path / "x")
    monkeypatch.setattr(files, "import_module", lambda name: (_ for _ in ()).throw(ImportError(f"no {name}")))
    with pytest.raises(ImportError, match=r"not installed .*: pip install 'nearkin\[pgvector\]'"):
        export_index(bits, pgvector)
    index = Index.build(np.eye(16), nk.ProductQuantizer(4, 4, rotation=None, random_state=0))
    with pytest.raises(ImportError, match=r"needs lance, .*pip install 'nearkin\[lance\]'"):
        export_index(index, lance)
