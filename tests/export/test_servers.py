"""Milvus and OpenSearch by their contracts: a stand-in for the client holds what it is given and searches it."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from nearkin.export import export_index
from nearkin.export.aliased import AliasedTarget
from nearkin.export.milvus import Milvus
from nearkin.export.opensearch import OpenSearch
from nearkin.index import Index


def nearest(rows: list[tuple[Any, bytes]], code: bytes, k: int) -> list[Any]:
    stored = np.frombuffer(b"".join(row[1] for row in rows), np.uint8).reshape(len(rows), -1)
    far = np.bitwise_count(stored ^ np.frombuffer(code, np.uint8)).sum(axis=1)
    return [rows[i][0] for i in np.argsort(far, kind="stable")[:k]]


class MilvusStandIn:
    """The calls of MilvusClient that the writer makes."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, bytes]]] = {}
        self.aliases: dict[str, str] = {}
        self.made: dict[str, Any] = {}

    def has_collection(self, name):
        return name in self.rows or name in self.aliases

    def describe_collection(self, name):
        return {"collection_name": self.aliases.get(name, name)}

    def query(self, name, output_fields, consistency_level):
        assert (output_fields, consistency_level) == (["count(*)"], "Strong")
        return [{"count(*)": len(self.rows[name])}]

    def create_schema(self, auto_id, enable_dynamic_field):
        fields = {}
        return SimpleNamespace(fields=fields, add_field=lambda name, kind, **more: fields.update({name: (kind, more)}))

    def prepare_index_params(self):
        indexes = []
        return SimpleNamespace(indexes=indexes, add_index=lambda field, **more: indexes.append((field, more)))

    def create_collection(self, name, schema, index_params):
        self.rows[name], self.made = [], {"fields": schema.fields, "indexes": index_params.indexes}

    def insert(self, name, data):
        self.rows[name] += [(row["id"], row["code"]) for row in data]

    def flush(self, name):
        assert name in self.rows

    load_collection = flush

    def search(self, name, data, anns_field, limit, search_params, consistency_level):
        assert (anns_field, search_params["metric_type"]) == ("code", "HAMMING")
        return [[{"id": found} for found in nearest(self.rows[name], code, limit)] for code in data]

    def create_alias(self, collection_name, alias):
        self.aliases[alias] = collection_name

    alter_alias = create_alias

    def drop_collection(self, name):
        assert name not in self.aliases.values()
        self.rows.pop(name, None)


class OpenSearchStandIn:
    """The calls of opensearchpy.OpenSearch that the writer makes."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[Any, bytes]]] = {}
        self.aliases: dict[str, str] = {}
        self.made: dict[str, Any] = {}
        self.indices = self

    def exists_alias(self, name):
        return name in self.aliases

    def get_alias(self, name):
        return {self.aliases[name]: {}}

    def exists(self, index):
        return index in self.rows

    def create(self, index, body):
        self.rows[index], self.made = [], body

    def count(self, index):
        return {"count": len(self.rows[index])}

    def bulk(self, body):
        for action, row in zip(body[::2], body[1::2], strict=True):
            assert action["index"]["_id"] == str(row["id"])
            self.rows[action["index"]["_index"]].append((row["id"], _unsigned(row["code"])))
        return {"errors": False, "items": []}

    def refresh(self, index):
        assert index in self.rows

    def msearch(self, body):
        answers = []
        for head, ask in zip(body[::2], body[1::2], strict=True):
            knn = ask["query"]["knn"]["code"]
            found = nearest(self.rows[head["index"]], _unsigned(knn["vector"]), ask["size"])
            answers.append({"hits": {"hits": [{"_source": {"id": name}} for name in found]}})
        return {"responses": answers}

    def update_aliases(self, body):
        for action in body["actions"]:
            if "remove" in action:
                assert self.aliases.pop(action["remove"]["alias"]) == action["remove"]["index"]
            else:
                self.aliases[action["add"]["alias"]] = action["add"]["index"]

    def delete(self, index, ignore_unavailable):
        assert index not in self.aliases.values()
        self.rows.pop(index, None)


def _unsigned(code: list[int]) -> bytes:
    return np.array(code, np.int8).tobytes()


@pytest.fixture(params=["milvus", "opensearch"])
def engine(request) -> tuple[Any, Any]:
    """(target class, stand-in)."""
    if request.param == "milvus":
        pytest.importorskip("pymilvus", reason="pip install 'nearkin[milvus]'")
        return Milvus, MilvusStandIn()
    pytest.importorskip("opensearchpy", reason="pip install 'nearkin[opensearch]'")
    return OpenSearch, OpenSearchStandIn()


@pytest.mark.parametrize("text", [True, False])
def test_rows_arrive_and_the_alias_moves(engine, text, bits, X) -> None:
    target, client = engine
    ids = [f"Zeile {i} ä" for i in range(len(X))] if text else np.arange(len(X)) - 7
    index = Index.build(X, bits.quantizer, ids=ids, metric="hamming")
    record = export_index(index, target(client=client))
    assert record["recall"] == 1
    assert record["tried_on_a_server"] is False
    (rows,) = client.rows.values()
    assert [row[0] for row in rows] == list(ids)
    assert b"".join(row[1] for row in rows) == bits.quantizer.encode(X).tobytes()
    assert client.aliases == {"nearkin": record["collection"]}
    assert export_index(index, target(client=client))["already_there"]
    other = Index.build(X[:20], bits.quantizer, metric="hamming")
    with pytest.raises(ValueError, match="--replace overwrites it"):
        export_index(other, target(client=client))
    export_index(other, target(client=client, replace=True))
    assert [len(rows) for rows in client.rows.values()] == [20]


def test_a_break_on_the_way_leaves_the_old_rows(engine, bits, X) -> None:
    target, client = engine
    export_index(Index.build(X[:20], bits.quantizer, metric="hamming"), target(client=client))
    before = dict(client.aliases)

    def broken(done: int, record: dict) -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        export_index(bits, target(client=client, replace=True), callback=broken)
    assert client.aliases == before
    assert [len(rows) for rows in client.rows.values()] == [20]


def test_what_each_engine_is_told(engine, bits) -> None:
    target, client = engine
    export_index(bits, target(client=client))
    if target is Milvus:
        from pymilvus import DataType

        assert client.made["fields"]["id"] == (DataType.INT64, {"is_primary": True})
        assert client.made["fields"]["code"] == (DataType.BINARY_VECTOR, {"dim": 16})
        assert client.made["indexes"][0][1]["metric_type"] == "HAMMING"
    else:
        code = client.made["mappings"]["properties"]["code"]
        assert (code["data_type"], code["dimension"], code["method"]["space_type"]) == ("binary", 16, "hamming")


def test_a_name_of_someone_elses_and_a_row_that_is_refused(engine, bits) -> None:
    target, client = engine
    client.rows["others"] = []
    with pytest.raises(ValueError, match="others, which is no alias of ours; give another --name"):
        export_index(bits, target(name="others", replace=True, client=client))
    if target is OpenSearch:
        client.bulk = lambda body: {"errors": True, "items": [{"index": {"error": "too wide"}}]}
        with pytest.raises(OSError, match="opensearch refused a row: too wide"):
            export_index(bits, target(client=client))
        assert list(client.rows) == ["others"]


def test_a_server_that_is_down(engine, bits) -> None:
    target, _ = engine
    with pytest.raises(ConnectionError, match=f"{target.engine_name} .*(127.0.0.1|connection)"):
        export_index(bits, target("http://127.0.0.1:1"))


@pytest.mark.parametrize("url", ["http://me:pa@s3cret@127.0.0.1:1", "http://me:s3cret/x@127.0.0.1:1", "me:s3cret@x"])
def test_a_password_in_the_url_is_not_repeated(bits, url) -> None:
    class Broken(AliasedTarget):
        engine_name, default_url = "broken", ""

        def connect(self):
            engine = Mock(error=OSError)
            engine.current.side_effect = OSError(f"cannot reach {self.url}")
            return engine

    with pytest.raises(ConnectionError, match="Give the password by the environment") as caught:
        export_index(bits, Broken(url))
    assert "s3cret" not in str(caught.value)
