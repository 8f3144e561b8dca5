"""A vector store of LlamaIndex over an `Index`."""

# pyright: reportIncompatibleMethodOverride=false
# LlamaIndex's methods take any argument and pass it over: here an unknown one is a TypeError.

from collections.abc import Sequence
from typing import Self

from nearkin._fields import Extra, StrPath
from nearkin.contracts import Quantizer
from nearkin.integrations.documents import Documents

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.schema import BaseNode
    from llama_index.core.vector_stores import types, utils
except ModuleNotFoundError as _error:
    raise ImportError(f"{_error}; LlamaIndexStore needs it: pip install 'nearkin[llama-index]'") from _error

Filters = types.MetadataFilters | None


class LlamaIndexStore(types.BasePydanticVectorStore):
    """Nodes, compared by cosine; queries of the default mode alone. An unknown argument of a method is a TypeError.

    `quantizer`, and `keep_vectors` and `oversample` for rescoring: see `Documents`.
    `store.client` has the documents, `store.client.index` is the index.
    """

    stores_text: bool = True
    _documents: Documents = PrivateAttr()

    def __init__(self, quantizer: Quantizer | int | None = None, **rescoring: Extra) -> None:
        super().__init__(stores_text=True)
        self._documents = Documents.of(self, {"quantizer": quantizer, **rescoring}, metric="cosine")

    def __repr__(self) -> str:
        return f"LlamaIndexStore({self._documents!r})"

    __str__ = __repr__

    @classmethod
    def class_name(cls) -> str:
        return "NearkinLlamaIndexStore"

    @property
    def client(self) -> Documents:
        return self._documents

    def add(self, nodes: Sequence[BaseNode]) -> list[str]:
        """Add nodes with their embeddings, or replace those of known ids; returns their ids."""
        ids = [node.node_id for node in nodes]
        records = [utils.node_to_metadata_dict(node, remove_text=False, flat_metadata=False) for node in nodes]
        self._documents.put(ids, records, [node.get_embedding() for node in nodes])
        return ids

    def delete(self, ref_doc_id: str) -> None:
        """Remove the nodes of a document."""
        with self._documents.lock:
            records = self._documents.records.items()
            self._documents.remove([name for name, record in records if record["ref_doc_id"] == ref_doc_id])

    def delete_nodes(self, node_ids: list[str] | None = None, filters: Filters = None) -> None:
        """Remove the nodes of these ids, those that pass the filters, or of these ids those that pass. ValueError
        without ids and filters."""
        if node_ids is None and not (filters and filters.filters):
            raise ValueError("node_ids and filters are missing; give one, or call clear() to remove all nodes")
        with self._documents.lock:
            self._documents.remove(self._accepted(node_ids, filters))

    async def adelete_nodes(self, node_ids: list[str] | None = None, filters: Filters = None) -> None:
        self.delete_nodes(node_ids, filters)

    def clear(self) -> None:
        self._documents.remove(list(self._documents.records))

    def get_nodes(self, node_ids: list[str] | None = None, filters: Filters = None) -> list[BaseNode]:
        return [self._node(name) for name in self._accepted(node_ids, filters)]

    def query(self, query: types.VectorStoreQuery) -> types.VectorStoreQueryResult:
        """The nodes nearest to the query's embedding, and their cosines."""
        if query.mode != types.VectorStoreQueryMode.DEFAULT or query.query_embedding is None:
            raise ValueError(f"query has the mode {query.mode}; it must be 'default', with a text")
        with self._documents.lock:
            keep = None
            if query.filters is not None or query.node_ids or query.doc_ids:  # an empty list limits nothing
                records, docs = self._documents.records, query.doc_ids
                found = self._accepted(query.node_ids or None, query.filters)
                keep = {name for name in found if not docs or records[name]["ref_doc_id"] in docs}.__contains__
            ids, scores = self._documents.nearest(query.query_embedding, query.similarity_top_k, keep)
            return types.VectorStoreQueryResult(nodes=[self._node(name) for name in ids], similarities=scores, ids=ids)

    def _accepted(self, ids: list[str] | None, filters: Filters) -> list[str]:
        """The known ids of those given, all for None, that pass the filters."""
        keep = utils.build_metadata_filter_fn(self._documents.records.__getitem__, filters)
        return self._documents.accepted(keep, ids)

    def _node(self, name: str) -> BaseNode:
        return utils.metadata_dict_to_node(self._documents.records[name])

    def persist(self, persist_path: str, fs: object = None) -> None:
        """Write nodes and index to a folder; nothing is pickled. An earlier save is replaced."""
        if fs is not None:
            raise ValueError("fs is given; nearkin writes to local folders alone")
        self._documents.save(persist_path, "llama-index", overwrite=True)

    @classmethod
    def from_persist_path(cls, persist_path: StrPath) -> Self:
        """The store in a folder that `persist` wrote; ValueError for another or a damaged one."""
        store = cls()
        store._documents = Documents.load(persist_path, "llama-index")
        return store
