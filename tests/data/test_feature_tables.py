"""Tables of features: numbers scaled, categories spread, and joined to pairs by their ids."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import nearkin as nk
from tests.covering import each


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_numbers_are_scaled_and_stay_dense(tmp_path: Path) -> None:
    ids, X, names = nk.data.read_features(write(tmp_path, "a.csv", "item,price,flat\nb,1,5\na,3,5\n"))
    assert ids.tolist() == ["b", "a"]
    assert names == ["price", "flat"]
    np.testing.assert_allclose(X, [[-1, 0], [1, 0]])  # a column without spread carries nothing, and divides by nothing


@each("kind", ["csr", "csc", "coo"])
def test_a_sparse_matrix_has_the_numbers_of_its_rows_as_ids(tmp_path: Path, kind: str) -> None:
    wanted = np.array([[0, 2.5, 0], [0, 0, 0], [1, 0, 0], [1, 3, 0]], np.float32)
    sp.save_npz(tmp_path / "f.npz", getattr(sp, f"{kind}_matrix")(wanted))
    ids, X, names = nk.data.read_features(tmp_path / "f.npz")
    assert (ids.tolist(), names) == ([0, 1, 2, 3], ["0", "1", "2"])
    np.testing.assert_array_equal(X.toarray(), wanted)
    pairs = nk.read_interactions(
        write(tmp_path, "p.csv", "user,item\na,0\na,3\nb,2\n"), right_features=tmp_path / "f.npz"
    )
    assert pairs.right_ids.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(sp.csr_matrix(pairs.right_features).toarray(), wanted)


def test_pairs_take_their_features_by_id(tmp_path: Path) -> None:
    pairs = write(tmp_path, "pairs.csv", "user,item\nann,x\nbob,y\n")
    items = write(tmp_path, "items.csv", "item,price\ny,1\nnever sold,2\nx,3\n")
    read = nk.read_interactions(pairs, right_features=items)
    assert read.right_ids.tolist() == ["y", "never sold", "x"]
    assert read.left_features is None
    assert read.matrix().toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert read.right_features[2, 0] > read.right_features[1, 0] > read.right_features[0, 0]


def test_pairs_without_features_are_named(tmp_path: Path) -> None:
    pairs = write(tmp_path, "pairs.csv", "user,item\nann,x\nbob,z\n")
    items = write(tmp_path, "items.csv", "item,price\nx,3\n")
    users = write(tmp_path, "users.csv", "user,age\nann,30\n")
    lacks = r"items.csv lacks 1 id of column 'item' of .*pairs.csv, the first is 'z' .*type missing='drop'"
    with pytest.raises(ValueError, match=lacks):
        nk.read_interactions(pairs, right_features=items)
    found = nk.read_interactions(pairs, right_features=items, left_features=users, missing="drop")
    assert (found.left_ids.tolist(), found.right_ids.tolist(), len(found)) == (["ann"], ["x"], 1)
    assert any("1 row left out: " in note and "users.csv lacks 1 id" in note for note in found.source.notes)
    with pytest.raises(ValueError, match=r"items.csv lacks 1 id .*\(1 of 1 rows\)"):  # nothing would be left
        nk.read_interactions(write(tmp_path, "z.csv", "user,item\nbob,z\n"), right_features=items, missing="drop")
    with pytest.raises(TypeError, match="use one type for both"):
        nk.read_interactions(pairs, right_features=write(tmp_path, "numbers.csv", "item,price\n1,3\n2,4\n"))
