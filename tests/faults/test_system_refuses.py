"""What the system refuses (a permission, descriptors, space, a failing disk) is said as that: no file is damaged."""

import errno
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin._storage import map_rows
from nearkin.data import read_column, read_table
from nearkin.jobs.check import check
from tests.covering import each

REFUSALS = (errno.EACCES, errno.EMFILE, errno.ENOSPC, errno.EIO)
X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    np.save(folder / "X.npy", X)
    np.savez(folder / "X.npz", X=X)
    sp.save_npz(folder / "m.npz", sp.csr_matrix(X))
    (folder / "X.csv").write_text("f0,f1\n1,2\n3,4\n")
    (folder / "X.jsonl").write_text('{"id": 1, "vector": [1, 2]}\n')
    (folder / "X.fvecs").write_bytes(b"".join(np.int32(4).tobytes() + row.tobytes() for row in X))
    nk.Index.build(X, ids=[f"v{i}" for i in range(30)]).save(folder / "idx")
    nk.OrdinalEmbedding(random_state=0).fit([[0, 1, 2], [0, 1, 3], [1, 2, 3], [3, 2, 1]]).save(folder / "map")
    return folder


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, Path], None]]:
    """Let the system refuse, with this error, to open what lies in the folder."""
    plain, stream, number, below = io.open, pa.input_stream, 0, ""

    def opened(file: Any, *args: Any, **options: Any) -> Any:
        if below and isinstance(file, str | os.PathLike) and os.fspath(file).startswith(below):
            raise OSError(number, os.strerror(number), os.fspath(file))
        return plain(file, *args, **options)

    def refuse(error: int, folder: Path) -> None:
        nonlocal number, below
        number, below = error, str(folder)

    monkeypatch.setattr(io, "open", opened)
    monkeypatch.setattr("builtins.open", opened)
    monkeypatch.setattr(pa, "input_stream", lambda file, **_: stream(opened(file, "rb")))
    yield refuse
    below = ""


READERS: dict[str, Callable[[Path], object]] = {
    "X.npy": nk.read_vectors,
    "X.npz": nk.read_vectors,
    "X.csv": nk.read_vectors,
    "X.jsonl": nk.read_vectors,
    "X.fvecs": nk.read_vectors,
    "m.npz": nk.read_interactions,
    "X.csv of pairs": lambda path: read_table(path.with_name("X.csv")),
    "X.npy of labels": lambda path: read_column(path.with_name("X.npy")),
    "idx": nk.Index.load,
    "idx checked": lambda path: check(path.with_name("idx")),
    "mapped": lambda path: map_rows(path.with_name("X.npy")),
    "map": nk.OrdinalEmbedding.load,
}


@each("name", READERS)
@each("number", REFUSALS)
def test_a_refusal_is_no_damage(name: str, number: int, files: Path, refusing: Callable[[int, Path], None]) -> None:
    refusing(number, files)
    with pytest.raises(OSError, match=r"Permission|Too many open|No space|Input/output") as caught:
        READERS[name](files / name)
    assert caught.value.errno == number
