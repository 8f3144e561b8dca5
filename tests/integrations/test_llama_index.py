"""A vector store in an index of LlamaIndex: nodes come back with text and metadata, filtered, deleted, saved."""

from pathlib import Path

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core")
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery, VectorStoreQueryMode

from nearkin.integrations import LlamaIndexStore

ROWS = {"a": (1.0, 0.0), "b": (0.0, 1.0), "c": (0.7, 0.7)}


def node(name: str) -> TextNode:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc {name}")}
    return TextNode(
        id_=name, text=f"text {name}", metadata={"name": name}, embedding=list(ROWS[name]), relationships=source
    )


def test_nodes_are_found_filtered_deleted_and_saved(tmp_path: Path) -> None:
    store = LlamaIndexStore()
    query = VectorStoreQuery(query_embedding=[0.1, 0.9], similarity_top_k=2)
    assert store.query(query).ids == []
    assert store.add([node(name) for name in ROWS]) == ["a", "b", "c"]
    store.persist(str(tmp_path / "store"))
    for each in (store, LlamaIndexStore.from_persist_path(tmp_path / "store")):
        found = each.query(query)
        assert found.ids == ["b", "c"]
        assert (found.nodes[0].get_content(), found.nodes[0].ref_doc_id) == ("text b", "doc b")
        assert found.similarities[0] == pytest.approx(0.9939, abs=1e-3)
        only = MetadataFilters(filters=[MetadataFilter(key="name", value="a")])
        options = ({"filters": only}, {"node_ids": ["a", "nobody"]}, {"doc_ids": ["doc a"]})
        for limits in options:
            assert each.query(VectorStoreQuery(query_embedding=[0.1, 0.9], similarity_top_k=2, **limits)).ids == ["a"]
        assert [one.node_id for one in each.get_nodes(filters=only)] == ["a"]
        each.delete("doc b")
        each.delete_nodes(["nobody"])
        each.delete_nodes(filters=only)
        assert [one.node_id for one in each.get_nodes()] == ["c"]
        each.clear()
        assert each.query(query).ids == []
    with pytest.raises(ValueError, match="mode"):
        store.query(VectorStoreQuery(query_embedding=[0.1, 0.9], mode=VectorStoreQueryMode.HYBRID))


def test_an_index_of_llama_index_retrieves_from_it() -> None:
    context = StorageContext.from_defaults(vector_store=LlamaIndexStore())
    nodes = [TextNode(id_=name, text=name) for name in ROWS]
    index = VectorStoreIndex(nodes, storage_context=context, embed_model=MockEmbedding(embed_dim=3))
    assert {found.node_id for found in index.as_retriever(similarity_top_k=3).retrieve("x")} == set(ROWS)
