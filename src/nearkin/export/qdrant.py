"""Qdrant: codes as vectors of +1 and -1 by dot product, which orders as Hamming distance does.

<a, b> = L - 2 h for signs a, b of L bits at Hamming distance h. Component i of "code" is +1 where bit i of
`hasher.encode` is 1. Binary quantization keeps such vectors as their bits, without loss; the originals lie on disk.
"""

import os
from typing import Any

import numpy as np

from nearkin._fields import Extra
from nearkin.export.aliased import AliasedTarget, Engine
from nearkin.export.extras import load_extra
from nearkin.export.source import RowBatch, Source
from nearkin.hashing.bits import unpack_signs


class Qdrant(AliasedTarget):
    """A collection with the vectors "code" and, where the index keeps its rows, "vector"; the id is in the payload.

    url: "http://host:6333"; the key, if any, in QDRANT_API_KEY. client: a `qdrant_client.QdrantClient` instead.
    """

    engine_name = "qdrant"
    default_url = "http://localhost:6333"

    def connect(self) -> Engine:
        module = load_extra("qdrant_client")
        client = self.client or module.QdrantClient(
            url=self.url, api_key=os.environ.get("QDRANT_API_KEY"), check_compatibility=False
        )
        return _Engine(client, module.models)


class _Engine(Engine):
    def __init__(self, client: Extra, models: Extra) -> None:
        from qdrant_client.http.exceptions import ApiException  # there if the client is

        self.client, self.models, self.error = client, models, ApiException
        self.n_bits = 0

    def current(self, alias: str) -> str | None:
        for found in self.client.get_aliases().aliases:
            if found.alias_name == alias:
                return found.collection_name
        if self.client.collection_exists(alias):
            raise ValueError(f"qdrant has a collection {alias}, which is no alias of ours; give another --name")
        return None

    def count(self, collection: str) -> int:
        return self.client.count(collection, exact=True).count

    def create(self, collection: str, source: Source) -> None:
        m = self.models
        self.n_bits = source.need_bits("qdrant")
        binary = m.BinaryQuantization(binary=m.BinaryQuantizationConfig(always_ram=True))
        vectors = {
            "code": m.VectorParams(size=self.n_bits, distance=m.Distance.DOT, on_disk=True, quantization_config=binary)
        }
        if source.index.kept is not None:  # for rescoring only: no graph over them
            vectors["vector"] = m.VectorParams(
                size=source.d, distance=m.Distance.EUCLID, on_disk=True, hnsw_config=m.HnswConfigDiff(m=0)
            )
        self.client.create_collection(collection, vectors_config=vectors)

    def insert(self, collection: str, batch: RowBatch, first: int) -> None:
        vectors = {"code": self._signs(batch.codes)}
        if batch.vectors is not None:
            vectors["vector"] = batch.vectors.tolist()
        points = self.models.Batch(
            ids=list(range(first, first + len(batch.ids))),
            payloads=[{"id": value} for value in batch.ids.tolist()],
            vectors=vectors,
        )
        self.client.upsert(collection, points=points, wait=True)

    def finish(self, collection: str) -> None:
        """Nothing: Qdrant indexes by itself, and answers exactly until it has."""

    def search(self, collection: str, codes: np.ndarray, k: int) -> list[list[object]]:
        m = self.models
        self.n_bits = self.n_bits or self.client.get_collection(collection).config.params.vectors["code"].size
        exact_bits = m.SearchParams(quantization=m.QuantizationSearchParams(rescore=False))
        asked = [
            m.QueryRequest(query=signs, using="code", limit=k, with_payload=True, params=exact_bits)
            for signs in self._signs(codes)
        ]
        found = self.client.query_batch_points(collection, requests=asked)
        return [[point.payload["id"] for point in answer.points] for answer in found]

    def publish(self, alias: str, collection: str, old: str | None) -> None:
        m = self.models
        gone = [m.DeleteAliasOperation(delete_alias=m.DeleteAlias(alias_name=alias))] if old else []
        made = m.CreateAliasOperation(create_alias=m.CreateAlias(collection_name=collection, alias_name=alias))
        self.client.update_collection_aliases(change_aliases_operations=[*gone, made])

    def drop(self, collection: str) -> None:
        self.client.delete_collection(collection)

    def _signs(self, codes: Any) -> list[list[float]]:
        return unpack_signs(codes, self.n_bits).tolist()
