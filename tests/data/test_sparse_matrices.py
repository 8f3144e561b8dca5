"""Sparse matrices of SciPy, in memory and in files of `save_npz`: pairs, or vectors where they are dense."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin.data.comparisons.reading import kind_of
from tests.covering import each

FORMATS = ("csr", "csc", "coo", "bsr", "dia")


@pytest.fixture
def matrix() -> sp.csr_matrix:
    """(30, 20) with an empty row and an empty column."""
    found = sp.random(30, 20, 0.2, format="lil", random_state=0)
    found[29], found[:, 19] = 0, 0
    return found.tocsr()


def same(found: nk.records.Interactions, wanted: sp.csr_matrix) -> bool:
    return found.shape == wanted.shape and not (found.matrix() != wanted.astype(np.float32)).nnz


@each("kind", ["matrix", "array"])
def test_every_format_is_pairs_with_the_numbers_of_all_rows_and_columns(
    matrix: sp.csr_matrix, kind: str, tmp_path: Path
) -> None:
    for name in (*FORMATS, "lil", "dok"):
        given = getattr(sp, f"{name}_{kind}")(matrix)
        assert same(nk.read_interactions(given), matrix), name
        if name in FORMATS:
            sp.save_npz(tmp_path / "m.npz", given, compressed=name != "csr")
            found = nk.read_interactions(tmp_path / "m.npz")
            assert same(found, matrix), name
            assert found.left_ids.tolist() == [*range(30)]
            assert kind_of(tmp_path / "m.npz") == "pairs"


def test_types_zeros_and_repeats(matrix: sp.csr_matrix, tmp_path: Path) -> None:
    cases: list[tuple[Any, Any]] = [
        ((10 * matrix).astype(kind), (10 * matrix).astype(kind)) for kind in (np.int8, np.uint64, np.float32)
    ]
    cases += [(matrix > 0.5, (matrix > 0.5).astype(int)), (matrix[:20] + matrix[:20].T, matrix[:20] + matrix[:20].T)]
    cases.append((sp.csr_matrix(([0.0, 1, 2], ([0, 1, 2], [0, 1, 2]))), np.diag([0.0, 1, 2])))
    cases.append((sp.coo_matrix(([1.0, 1, 2], ([0, 0, 2], [1, 1, 2]))), [[0, 2, 0], [0, 0, 0], [0, 0, 2]]))
    for given, wanted in cases:
        sp.save_npz(tmp_path / "m.npz", given)
        readings = [nk.read_interactions(source) for source in (given, tmp_path / "m.npz")]
        for found in (*readings, nk.Interactions.from_matrix(given)):
            np.testing.assert_array_equal(found.matrix().toarray(), sp.csr_matrix(wanted).toarray().astype(np.float32))
            assert found.weights.all()


@each(
    ("wrong", "message"),
    [
        (sp.eye(3) * 1j, "complex128; it must be"),
        (sp.coo_array(np.array([1.0, 0, 2])), r"shape \(3,\) .* it must be|mismatching number"),
        (-sp.eye(3), "negative weights in 3 cells"),
        (sp.eye(3) * np.nan, "missing numbers in 3 cells"),
        (sp.csr_matrix((3, 4)), "no pair is left"),
    ],
)
def test_what_is_refused(wrong: Any, message: str, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "m.npz", wrong)
    for source in (wrong, tmp_path / "m.npz"):
        with pytest.raises(ValueError, match=message):
            nk.read_interactions(source)
    if message.startswith("missing"):
        with pytest.raises(ValueError, match="contains NaN"):
            nk.data.read_features(tmp_path / "m.npz")


def test_other_readers_name_the_way(matrix: sp.csr_matrix, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "m.npz", matrix)
    for read in (nk.read_vectors, nk.data.open_vectors, nk.data.read_column, nk.data.read_neighbors):
        with pytest.raises(ValueError, match=r"call read_interactions.*write them dense: np\.save\('X\.npy'"):
            read(tmp_path / "m.npz")
    parts = matrix.tocoo()
    np.savez(tmp_path / "m.npz", row=parts.row, col=parts.col, data=parts.data, shape=np.array(matrix.shape))
    with pytest.raises(ValueError, match=r"m\.npz has columns of \[2, \d+\] rows"):  # no file of save_npz
        nk.read_interactions(tmp_path / "m.npz")


def test_damage_is_named(matrix: sp.csr_matrix, tmp_path: Path) -> None:
    matrix.indices[3] = 500
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array([30, 20])}
    np.savez(tmp_path / "m.npz", **parts, format=np.array(b"csr"))
    with pytest.raises(ValueError, match=r"m\.npz cannot be read.*indices must be < 20"):
        nk.read_interactions(tmp_path / "m.npz")
