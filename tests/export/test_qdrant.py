"""The contract of engines with aliases, on the edition of Qdrant that runs inside this process."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import nearkin as nk
from nearkin.export import RecallTooLowError, export_index
from nearkin.export.qdrant import Qdrant
from nearkin.hashing.bits import unpack_signs
from nearkin.index import Index

pytestmark = [
    pytest.mark.skipif(find_spec("qdrant_client") is None, reason="pip install 'nearkin[qdrant]'"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
]


def library() -> Any:
    """Imported by the process that runs these tests alone: it takes two seconds."""
    return import_module("qdrant_client")


@pytest.fixture
def client() -> Any:
    return library().QdrantClient(":memory:")


@pytest.fixture(scope="session")
def small(X: np.ndarray, hasher: nk.ITQ) -> Index:
    return Index.build(X[:400], hasher, ids=[f"row {i}" for i in range(400)], metric="hamming", keep_vectors=True)


def names(client: Any) -> set[str]:
    return {found.name for found in client.get_collections().collections}


def test_the_dot_product_of_signs_is_the_hamming_distance(small, X, Q, client) -> None:
    record = export_index(small, Qdrant(client=client))
    assert record["recall"] == 1  # embedded, its search is exact
    signs = unpack_signs(small.quantizer.encode(Q), 12)
    scores, _ = small.search(Q, 10)
    for row, expected in zip(signs, scores, strict=True):
        found = client.query_points("nearkin", query=row.tolist(), using="code", limit=10).points
        np.testing.assert_array_equal([(12 - point.score) / 2 for point in found], expected)


def test_ids_and_vectors_lie_beside(small, X, client) -> None:
    export_index(small, Qdrant(client=client))
    point = client.retrieve("nearkin", [7], with_vectors=True)[0]
    assert point.payload == {"id": "row 7"}
    np.testing.assert_allclose(point.vector["vector"], X[7], rtol=1e-6)
    np.testing.assert_array_equal(point.vector["code"], unpack_signs(small.quantizer.encode(X[7:8]), 12)[0])


def test_rescoring_by_a_prefetch(small, Q, client) -> None:
    export_index(small, Qdrant(client=client))
    own = small.search(Q, 5, oversample=80)[1]  # all rows: an exact order
    for query, code, truth in zip(Q, unpack_signs(small.quantizer.encode(Q), 12), own, strict=True):
        prefetch = library().models.Prefetch(query=code.tolist(), using="code", limit=400)
        found = client.query_points("nearkin", prefetch=prefetch, query=query.tolist(), using="vector", limit=5).points
        assert [point.payload["id"] for point in found] == truth.tolist()


def test_twice_is_once_and_another_needs_replace(small, X, hasher, client) -> None:
    export_index(small, Qdrant(client=client))
    assert export_index(small, Qdrant(client=client))["already_there"]
    before = names(client)
    other = Index.build(X[:50], hasher, metric="hamming")
    with pytest.raises(ValueError, match=r"nearkin names another index .*--replace overwrites it"):
        export_index(other, Qdrant(client=client))
    assert names(client) == before
    export_index(other, Qdrant(client=client, replace=True))
    assert client.count("nearkin").count == 50
    assert len(names(client)) == 1


def test_what_breaks_on_the_way_leaves_the_old_rows(small, X, hasher, client, monkeypatch) -> None:
    export_index(small, Qdrant(client=client))
    before, other = names(client), Index.build(X[:3000], hasher, metric="hamming")

    def broken(done: int, record: dict) -> None:
        if done > 1500:
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        export_index(other, Qdrant(client=client, replace=True), callback=broken)
    assert (names(client), client.count("nearkin").count) == (before, 400)
    with pytest.raises(RecallTooLowError):
        export_index(other, _Wrong(client=client, replace=True))
    assert (names(client), client.count("nearkin").count) == (before, 400)


class _Wrong(Qdrant):
    """Names the same row ten times."""

    def _search(self, client, collection, signs, k):
        return np.zeros((len(signs), k), int)


def test_rows_lost_by_another_hand_are_noticed(small, client) -> None:
    export_index(small, Qdrant(client=client))
    client.delete("nearkin", points_selector=[1, 2, 3])
    with pytest.raises(ValueError, match="--replace overwrites it"):
        export_index(small, Qdrant(client=client))
    export_index(small, Qdrant(client=client, replace=True))
    assert client.count("nearkin").count == 400


def test_a_collection_of_someone_elses_and_a_server_that_is_down(small, client) -> None:
    params = library().models.VectorParams(size=2, distance=library().models.Distance.DOT)
    client.create_collection("others", vectors_config=params)
    with pytest.raises(ValueError, match="a collection others, which is no alias of ours"):
        export_index(small, Qdrant(name="others", replace=True, client=client))
    with pytest.raises(ConnectionError, match=r"qdrant at 127\.0\.0\.1: .*nothing was"):
        export_index(small, Qdrant("http://127.0.0.1:1"))


@pytest.mark.parametrize("url", ["http://me:pa@s3cret@127.0.0.1:1", "http://me:s3cret/x@127.0.0.1:1", "me:s3cret@x"])
def test_a_password_in_the_url_is_not_repeated(small, url) -> None:
    class Broken:
        def get_aliases(self):
            raise library().http.exceptions.ResponseHandlingException(OSError(f"cannot reach {url}"))

    with pytest.raises(ConnectionError, match="Give the key by QDRANT_API_KEY") as caught:
        export_index(small, Qdrant(url, client=Broken()))
    assert "s3cret" not in str(caught.value)
