"""Milvus: packed codes as BINARY_VECTOR by the metric HAMMING.

The bytes are those of `hasher.encode` (lowest bit first within a byte); its padding bits are zero in rows and queries,
and so count for nothing.
"""

import os

import numpy as np

from nearkin._fields import Extra
from nearkin.export.aliased import AliasedTarget, Engine
from nearkin.export.extras import load_extra
from nearkin.export.source import RowBatch, Source


class Milvus(AliasedTarget):
    """A collection with the fields id (INT64 or VARCHAR, primary key) and code (BINARY_VECTOR, index BIN_IVF_FLAT).

    url: "http://host:19530"; the token, if any, in MILVUS_TOKEN. client: a `pymilvus.MilvusClient` instead. Milvus Lite
    has no binary vectors: this needs a server.
    """

    engine_name = "milvus"
    default_url = "http://localhost:19530"

    def connect(self) -> Engine:
        module = load_extra("pymilvus")
        try:
            client = self.client or module.MilvusClient(uri=self.url, token=os.environ.get("MILVUS_TOKEN", ""))
        except module.MilvusException as error:
            text = "" if "@" in self.url else f": {error.message}"  # a url with a password is not repeated
            raise ConnectionError(f"milvus gives no connection{text}") from None
        return _Engine(client, module)


class _Engine(Engine):
    def __init__(self, client: Extra, module: Extra) -> None:
        self.client, self.module, self.error = client, module, module.MilvusException

    def current(self, alias: str) -> str | None:
        if not self.client.has_collection(alias):  # true for aliases too
            return None
        found = self.client.describe_collection(alias)["collection_name"]
        if found == alias:
            raise ValueError(f"milvus has a collection {alias}, which is no alias of ours; give another --name")
        return found

    def count(self, collection: str) -> int:
        return self.client.query(collection, output_fields=["count(*)"], consistency_level="Strong")[0]["count(*)"]

    def create(self, collection: str, source: Source) -> None:
        kind = self.module.DataType
        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        if source.has_text_ids:
            longest = max(len(str(value).encode()) for value in source.ids())
            schema.add_field("id", kind.VARCHAR, is_primary=True, max_length=max(1, longest))
        else:
            schema.add_field("id", kind.INT64, is_primary=True)
        schema.add_field("code", kind.BINARY_VECTOR, dim=8 * source.codes.shape[1])
        lists = int(np.clip(4 * len(source) ** 0.5, 1, 65_536))
        index = self.client.prepare_index_params()
        index.add_index("code", index_type="BIN_IVF_FLAT", metric_type="HAMMING", params={"nlist": lists})
        self.client.create_collection(collection, schema=schema, index_params=index)

    def insert(self, collection: str, batch: RowBatch, first: int) -> None:
        rows = zip(batch.ids.tolist(), map(bytes, batch.codes), strict=True)  # type: ignore[arg-type]
        self.client.insert(collection, data=[{"id": name, "code": code} for name, code in rows])

    def finish(self, collection: str) -> None:
        self.client.flush(collection)
        self.client.load_collection(collection)

    def search(self, collection: str, codes: np.ndarray, k: int) -> list[list[object]]:
        found = self.client.search(
            collection,
            data=[bytes(code) for code in codes],
            anns_field="code",
            limit=k,
            search_params={"metric_type": "HAMMING", "params": {"nprobe": 64}},
            consistency_level="Strong",
        )
        return [[hit["id"] for hit in hits] for hits in found]

    def publish(self, alias: str, collection: str, old: str | None) -> None:
        (self.client.alter_alias if old else self.client.create_alias)(collection_name=collection, alias=alias)

    def drop(self, collection: str) -> None:
        self.client.drop_collection(collection)
