"""Files under the endings of other programs: text is read, of others the error says what to type."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nearkin as nk
from tests.covering import each


@each(("name", "mark"), [("ratings.dat", "::"), ("u.data", "\t"), ("a.tab", "\t"), ("ratings.dat.gz", "::")])
def test_text_of_other_programs_is_read(tmp_path: Path, name: str, mark: str) -> None:
    text = "".join(f"{u % 7}{mark}{u % 5}{mark}4{mark}{978300760 + u}\n" for u in range(40)).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert nk.read_interactions(tmp_path / name).shape == (7, 5)


def test_vectors_in_such_a_file_are_read(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3)).round(3)
    np.savetxt(tmp_path / "x.dat", X, fmt="%.3f")
    np.testing.assert_allclose(nk.read_vectors(tmp_path / "x.dat"), X, atol=1e-6)


@each(
    ("name", "way"),
    [
        *(("m.mtx", "save_npz"), ("x.mat", "np.save"), ("v.bin", "save_word2vec_format"), ("s.dta", "pandas")),
        *(("a.xls", "save the sheet as CSV"), ("a.pt", r"X.float\(\).numpy\(\)"), ("a.csv.zst", "type unzstd")),
        ("a.npy.gz", "only text is read so .*gunzip -k"),
    ],
)
def test_what_to_type_for_others_is_named(tmp_path: Path, name: str, way: str) -> None:
    (tmp_path / name).write_bytes(b"PK12345678")
    for read in (nk.read_interactions, nk.read_vectors, nk.read_comparisons, nk.data.read_column):
        with pytest.raises(ValueError, match=way):
            read(tmp_path / name)


@each("ending", [".gz", ".xz", ".parquet", ".npy", ".xlsx"])
def test_files_under_another_ending_are_named(tmp_path: Path, ending: str) -> None:
    """The NUL bytes of a compressed file were called UTF-16."""
    frame = pd.DataFrame({"user": ["a"], "item": ["x"]})
    write = {".parquet": frame.to_parquet, ".xlsx": frame.to_excel, ".npy": lambda path: np.save(path, np.eye(2))}
    write.get(ending, frame.to_csv)(tmp_path / f"a.csv{ending}")
    path = (tmp_path / f"a.csv{ending}").rename(tmp_path / "a.csv")
    for read in (nk.read_interactions, nk.read_comparisons, nk.read_vectors):
        with pytest.raises(ValueError, match=f"a.csv is in the .* format: give it the ending {ending}"):
            read(path)


def test_a_workbook_is_read_wherever_text_is(tmp_path: Path) -> None:
    """Also with marks of other delimiters in its cells, and under options that are for text files."""
    frame = pd.DataFrame({"id": ["a;1", "b;2", 'c "3"'], "x": [0.5, 1.25, 2], "y": [1.5, -3, 7.5]})
    frame.to_excel(tmp_path / "X.xlsx", index=False, startrow=2, startcol=1)
    with nk.data.text_options(encoding="cp1252", delimiter="tab"):
        found = nk.data.open_vectors(tmp_path / "X.xlsx")
        assert found.read().tolist() == frame[["x", "y"]].to_numpy().tolist()
        assert nk.data.read_column(f"{tmp_path / 'X.xlsx'}:id").tolist() == frame["id"].tolist() == found.ids().tolist()
        pd.DataFrame([[1, 2], [2, 0], [0, 1]]).to_excel(tmp_path / "near.xlsx", index=False, header=False)
        assert nk.data.read_neighbors(tmp_path / "near.xlsx").tolist() == [[1, 2], [2, 0], [0, 1]]
        ids, features, names = nk.data.read_features(tmp_path / "X.xlsx")
        assert (ids.tolist(), features.shape, names) == (frame["id"].tolist(), (3, 2), ["x", "y"])
    pd.DataFrame().to_excel(tmp_path / "none.xlsx")
    with pytest.raises(ValueError, match=r"none\.xlsx is empty; it must hold a table"):
        nk.data.read_table(tmp_path / "none.xlsx")
