"""The keys of --json records that docs/promises.md keeps: more may come, none of these may go."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.cli.conftest import run_json
from tests.covering import each

KEYS = {
    "compress": "bytes_per_vector compression data dimensions distortion method metric seconds seed threads train "
    "trained_on vectors",
    "search": "hits index k n_probe out oversample queries seconds threads",
    "evaluate": "1-recall@1 5-recall@5 bytes_per_vector compression distortion index k method n_probe oversample "
    "queries queries_per_second query_file searches seconds threads vectors",
    "check": "bytes damaged files folder format_version kind others threads",
    "sweep": "choice choice_with_vectors data k metric query_shift "
    "queries queries_are_rows rows_in_file seconds seed target threads trials",
    "add": "folder seconds threads vectors vectors_before",
    "remove": "folder seconds threads vectors vectors_before",
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("json")
    X, Q, idx = folder / "X.npy", folder / "Q.npy", folder / "idx"
    np.save(X, rng.normal(size=(300, 8)).astype(np.float32))
    np.save(Q, rng.normal(size=(20, 8)).astype(np.float32))
    words = {
        "compress": (X, "--bytes", 4, "--centroids", 16, "--keep-vectors", "--out", idx),
        "search": (idx, Q, "-k", 2),
        "evaluate": (idx, Q, "--base", X, "-k", 5, "--oversample", 2),
        "check": (idx,),
        "sweep": (X, "--queries", Q, "--recall", 0.5),
        "add": (idx, Q),
        "remove": (idx, "0", "1"),
    }
    return {command: run_json(command, *args) for command, args in words.items()}


def keys(record: object) -> Iterator[str]:
    """The keys of a record and of those in it."""
    for key, value in record.items() if isinstance(record, dict) else enumerate(record):
        yield str(key)
        yield from keys(value) if isinstance(value, dict | list) else ()


@each("command", KEYS)
def test_no_key_is_lost(command: str, records: dict[str, dict]) -> None:
    assert set(KEYS[command].split()) <= set(records[command])
    assert not [key for key in keys(records[command]) if " " in key]
