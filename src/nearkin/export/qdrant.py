"""Qdrant: codes as vectors of +1 and -1 by dot product, which orders as Hamming distance does.

<a, b> = L - 2 h for signs a, b of L bits at Hamming distance h. Component i of "code" is +1 where bit i of
`hasher.encode` is 1. Binary quantization keeps such vectors as their bits, without loss; the originals lie on disk.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import numpy as np

from nearkin._fields import Extra
from nearkin.data.files import extra
from nearkin.export.source import Source
from nearkin.export.target import Callback, Target, Written, padded_ids
from nearkin.hashing.bits import unpack_signs


class Qdrant(Target):
    """A collection with the vectors "code" and, if the index keeps its rows, "vector"; the id is in the payload.

    url: "http://host:6333"; the key, if any, in QDRANT_API_KEY. client: a `qdrant_client.QdrantClient` instead.

    Rows go into a collection `name`_`fingerprint`; when it is whole and checked, the alias `name` moves to it. Searches
    by `name` see the old rows or the new ones. The same index again changes nothing; another needs `replace`, which
    removes the old collection in the end. An export that is killed leaves its collection, and the next one to the same
    index removes it. Tested on the edition of Qdrant that runs inside the process, not against a server.
    """

    recall_target = 0.95  # a server's index is approximate

    def __init__(
        self, url: str = "http://localhost:6333", name: str = "nearkin", replace: bool = False, client: Extra = None
    ) -> None:
        self.url, self.name, self.replace, self.client = url, name, replace, client

    @contextmanager
    def writing(self, source: Source, callback: Callback) -> Iterator[Written]:
        n_bits, module = source.need_bits("qdrant"), extra("qdrant_client", "qdrant")
        key = os.environ.get("QDRANT_API_KEY")
        client = self.client or module.QdrantClient(url=self.url, api_key=key, check_compatibility=False)
        with self._explained():
            fresh, old = f"{self.name}_{source.fingerprint()}", self._current(client)
            there = old == fresh and client.count(fresh, exact=True).count == len(source)
            if old is not None and not there:
                if not self.replace:
                    raise ValueError(f"{self.name} names another index ({old}); --replace overwrites it")
                fresh += "_again" if old == fresh else ""
            facts = {"collection": fresh, "alias": self.name, "already_there": there, "tried_on_a_server": False}
            written = Written(lambda asked, k: self._search(client, fresh, unpack_signs(asked, n_bits), k), facts)
            if there:
                yield written
                return
            m = module.models
            try:
                _fill(client, m, fresh, source, callback)
                yield written
                gone = [m.DeleteAliasOperation(delete_alias=m.DeleteAlias(alias_name=self.name))] if old else []
                made = m.CreateAlias(collection_name=fresh, alias_name=self.name)
                changes = [*gone, m.CreateAliasOperation(create_alias=made)]  # in one step
                client.update_collection_aliases(change_aliases_operations=changes)
            except BaseException:
                with suppress(Exception):  # the first error is the one to raise
                    client.delete_collection(fresh)
                raise
            if old is not None:
                client.delete_collection(old)

    def _current(self, client: Extra) -> str | None:
        """The collection that the alias names, or None; ValueError if it is the name of a collection itself."""
        for found in client.get_aliases().aliases:
            if found.alias_name == self.name:
                return found.collection_name
        if client.collection_exists(self.name):
            raise ValueError(f"qdrant has a collection {self.name}, which is no alias of ours; give another --name")
        return None

    def _search(self, client: Extra, collection: str, signs: np.ndarray, k: int) -> np.ndarray:
        """Ids (q, k) of the nearest to queries (q, bits); -1 or '' for none."""
        m = extra("qdrant_client", "qdrant").models
        exact_bits = m.SearchParams(quantization=m.QuantizationSearchParams(rescore=False))
        options = {"using": "code", "limit": k, "with_payload": True, "params": exact_bits}
        asked = [m.QueryRequest(query=row, **options) for row in signs.tolist()]
        answers = client.query_batch_points(collection, requests=asked)
        return padded_ids([[point.payload["id"] for point in answer.points] for answer in answers], k)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """The client's own errors as ConnectionError, without a password that the address may hold."""
        from qdrant_client.http.exceptions import ApiException  # part of the optional client

        try:
            yield
        except ApiException as error:
            text = (str(error).strip().splitlines() or [type(error).__name__])[0]
            if "@" in self.url:  # where a password ends is a guess: neither the address nor what quotes it
                raise ConnectionError(
                    f"qdrant: {type(error).__name__}; nothing was published. Give the key by QDRANT_API_KEY and not by "
                    "--url to read the whole message"
                ) from None
            place = urlsplit(self.url).hostname or self.url
            raise ConnectionError(f"qdrant at {place}: {text}; nothing was published") from error


def _fill(client: Extra, models: Extra, collection: str, source: Source, callback: Callback) -> None:
    """A new collection with all rows; one that a killed export left is removed first."""
    client.delete_collection(collection)
    m, n_bits, done = models, source.n_bits or 0, 0
    binary = m.BinaryQuantization(binary=m.BinaryQuantizationConfig(always_ram=True))
    vectors = {"code": m.VectorParams(size=n_bits, distance=m.Distance.DOT, on_disk=True, quantization_config=binary)}
    if source.index.kept is not None:  # for rescoring only: no graph over them
        vectors["vector"] = m.VectorParams(
            size=source.d, distance=m.Distance.EUCLID, on_disk=True, hnsw_config=m.HnswConfigDiff(m=0)
        )
    client.create_collection(collection, vectors_config=vectors)
    for batch in source.batches(1024, callback):
        columns = {"code": unpack_signs(np.asarray(batch.codes), n_bits).tolist()}
        if batch.vectors is not None:
            columns["vector"] = batch.vectors.tolist()
        payloads = [{"id": value} for value in batch.ids.tolist()]
        points = m.Batch(ids=list(range(done, done + len(batch.ids))), payloads=payloads, vectors=columns)
        client.upsert(collection, points=points, wait=True)
        done += len(batch.ids)
