"""A small index with exact rows kept, names that are hostile, and what lies beside its rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.web.explore import Columns, Explorer, open_collection

HOSTILE = '<img src=x onerror="document.title=1"></script><script>document.title=2</script>'
N = 120


@contextmanager
def short_maps() -> Iterator[None]:
    """Maps of neighbours take few steps: for fixtures of several tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nearkin.web.explore.server.STEPS", 250)
        yield


@pytest.fixture(autouse=True)
def quickly_mapped() -> Iterator[None]:
    """The same for each test."""
    with short_maps():
        yield


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 8)) * 3
    return (centres[rng.integers(0, 4, N)] + rng.normal(size=(N, 8))).astype(np.float32)


@pytest.fixture(scope="session")
def ids() -> list[str]:
    return [HOSTILE, *(f"item-{number}" for number in range(1, N))]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, rows: np.ndarray, ids: list[str]) -> Path:
    """Two indexes over the same rows, `idx` and `finer`, whose rows stand in another order; labels, texts, images."""
    path = tmp_path_factory.mktemp("explore")
    coarse = nk.ProductQuantizer(n_subspaces=2, n_centroids=8, random_state=0)
    nk.Index.build(rows, coarse, ids=ids, keep_vectors=True).save(path / "idx")
    order = np.random.default_rng(1).permutation(N)
    finer = nk.ProductQuantizer(n_subspaces=4, n_centroids=16, random_state=0)
    nk.Index.build(rows[order], finer, ids=np.array(ids)[order]).save(path / "finer")
    np.save(path / "labels.npy", np.arange(N) % 3)
    np.save(path / "X.npy", rows)
    text = "\n".join(f"{name}|said of {number}" for number, name in enumerate(ids) if number)
    (path / "texts.csv").write_text(f"id|text\n{text}\n")
    np.save(path / "images.npy", np.random.default_rng(0).integers(0, 17, (N, 8, 8)).astype(np.uint8))
    return path


@pytest.fixture(scope="session")
def explorer(folder: Path) -> Explorer:
    collection = open_collection(
        folder / "idx", labels=f"{folder}/labels.npy", images=f"{folder}/images.npy", compare=folder / "finer", k=5
    )
    columns = Columns(collection)
    with short_maps():
        columns.run()
    return Explorer("idx", collection, columns)
