"""OpenSearch: packed codes as a binary knn_vector by the space "hamming".

The bytes are those of `hasher.encode` (lowest bit first within a byte), each written as a signed integer, -128 to 127,
as OpenSearch wants them; padding bits are zero in rows and queries.
"""

import os
from typing import Any

import numpy as np

from nearkin._fields import Extra
from nearkin._types import Record
from nearkin.export.aliased import AliasedTarget, Engine
from nearkin.export.extras import load_extra
from nearkin.export.source import RowBatch, Source


class OpenSearch(AliasedTarget):
    """An index with the fields id and code (knn_vector, binary, HNSW by FAISS).

    url: "https://host:9200"; user and password, if any, in OPENSEARCH_USER and OPENSEARCH_PASSWORD. client: an
    `opensearchpy.OpenSearch` instead.
    """

    engine_name = "opensearch"
    default_url = "http://localhost:9200"

    def connect(self) -> Engine:
        module = load_extra("opensearchpy")
        user = os.environ.get("OPENSEARCH_USER")
        auth = (user, os.environ.get("OPENSEARCH_PASSWORD", "")) if user else None
        return _Engine(self.client or module.OpenSearch(self.url, http_auth=auth), module)


class _Engine(Engine):
    def __init__(self, client: Extra, module: Extra) -> None:
        self.client = client
        self.error = (module.OpenSearchException, module.helpers.BulkIndexError)

    def current(self, alias: str) -> str | None:
        if self.client.indices.exists_alias(name=alias):
            return next(iter(self.client.indices.get_alias(name=alias)))
        if self.client.indices.exists(index=alias):
            raise ValueError(f"opensearch has an index {alias}, which is no alias of ours; give another --name")
        return None

    def count(self, collection: str) -> int:
        return self.client.count(index=collection)["count"]

    def create(self, collection: str, source: Source) -> None:
        method = {"name": "hnsw", "engine": "faiss", "space_type": "hamming"}
        dimension = 8 * source.codes.shape[1]
        code = {"type": "knn_vector", "data_type": "binary", "dimension": dimension, "method": method}
        name = {"type": "keyword" if source.has_text_ids else "long"}
        body = {"settings": {"index": {"knn": True}}, "mappings": {"properties": {"id": name, "code": code}}}
        self.client.indices.create(index=collection, body=body)

    def insert(self, collection: str, batch: RowBatch, first: int) -> None:
        lines: list[Record] = []
        for name, code in zip(batch.ids.tolist(), _signed(batch.codes), strict=True):
            lines += [{"index": {"_index": collection, "_id": str(name)}}, {"id": name, "code": code}]
        answer = self.client.bulk(body=lines)
        if answer["errors"]:
            wrong = next(item["index"]["error"] for item in answer["items"] if "error" in item["index"])
            raise OSError(f"opensearch refused a row: {wrong}; nothing was published")

    def finish(self, collection: str) -> None:
        self.client.indices.refresh(index=collection)

    def search(self, collection: str, codes: np.ndarray, k: int) -> list[list[object]]:
        lines: list[Record] = []
        for code in _signed(codes):
            lines += [{"index": collection}, {"size": k, "query": {"knn": {"code": {"vector": code, "k": k}}}}]
        answers = self.client.msearch(body=lines)["responses"]
        return [[hit["_source"]["id"] for hit in answer["hits"]["hits"]] for answer in answers]

    def publish(self, alias: str, collection: str, old: str | None) -> None:
        gone = [{"remove": {"index": old, "alias": alias}}] if old else []
        self.client.indices.update_aliases(body={"actions": [*gone, {"add": {"index": collection, "alias": alias}}]})

    def drop(self, collection: str) -> None:
        self.client.indices.delete(index=collection, ignore_unavailable=True)


def _signed(codes: Any) -> list[list[int]]:
    return codes.view(np.int8).tolist()
