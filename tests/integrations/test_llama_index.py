"""A vector store in an index of LlamaIndex: nodes come back with text and metadata, filtered, deleted, saved."""

import asyncio
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core")
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from nearkin.integrations import LlamaIndexStore
from tests.covering import each

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
    for kept in (store, LlamaIndexStore.from_persist_path(tmp_path / "store")):
        found = kept.query(query)
        assert found.ids == ["b", "c"]
        assert (found.nodes[0].get_content(), found.nodes[0].ref_doc_id) == ("text b", "doc b")
        assert found.similarities[0] == pytest.approx(0.9939, abs=1e-3)
        only = MetadataFilters(filters=[MetadataFilter(key="name", value="a")])
        options = ({"filters": only}, {"node_ids": ["a", "nobody"]}, {"doc_ids": ["doc a"]})
        for limits in options:
            assert kept.query(VectorStoreQuery(query_embedding=[0.1, 0.9], similarity_top_k=2, **limits)).ids == ["a"]
        kept.delete("doc b")
        kept.delete_nodes(["nobody"])
        kept.delete_nodes(filters=only)
        assert [one.node_id for one in kept.get_nodes()] == ["c"]
        kept.clear()
        assert kept.query(query).ids == []
    with pytest.raises(ValueError, match="mode"):
        store.query(VectorStoreQuery(query_embedding=[0.1, 0.9], mode=VectorStoreQueryMode.HYBRID))


def test_an_index_of_llama_index_retrieves_from_it() -> None:
    context = StorageContext.from_defaults(vector_store=LlamaIndexStore())
    nodes = [TextNode(id_=name, text=name) for name in ROWS]
    index = VectorStoreIndex(nodes, storage_context=context, embed_model=MockEmbedding(embed_dim=3))
    assert {found.node_id for found in index.as_retriever(similarity_top_k=3).retrieve("x")} == set(ROWS)


def leaf(key: str, operator: FilterOperator, value: object = None) -> MetadataFilter:
    return MetadataFilter(key=key, operator=operator, value=value)


def joined(condition: FilterCondition, *filters: MetadataFilter) -> MetadataFilters:
    return MetadataFilters(filters=list(filters), condition=condition)


IS, AND, OR, NOT = FilterOperator, FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT
METADATA = {"a": {"n": 1, "k": "Red"}, "b": {"n": 5, "k": "blue", "tags": ["p", "q"]}, "c": {"n": 9, "tags": []}}
LEAVES = [
    (leaf("n", IS.EQ, 5), "b"), (leaf("n", IS.NE, 5), "ac"), (leaf("n", IS.GT, 4), "bc"), (leaf("n", IS.GTE, 9), "c"),
    (leaf("n", IS.LT, 5), "a"), (leaf("n", IS.LTE, 5), "ab"), (leaf("n", IS.IN, [1, 9]), "ac"),
    (leaf("n", IS.NIN, [1, 9]), "b"), (leaf("k", IS.NE, "Red"), "bc"), (leaf("tags", IS.ANY, ["q", "z"]), "b"),
    (leaf("tags", IS.ALL, ["p", "q"]), "b"), (leaf("tags", IS.CONTAINS, "p"), "b"),
    (leaf("k", IS.TEXT_MATCH, "ed"), "a"),
    (leaf("k", IS.TEXT_MATCH_INSENSITIVE, "BLUE"), "b"), (leaf("tags", IS.IS_EMPTY), "ac"), (leaf("no", IS.EQ, 1), ""),
]  # fmt: skip
JOINED = [
    (joined(OR, leaf("n", IS.EQ, 1), leaf("n", IS.GT, 5)), "ac"), (joined(NOT, leaf("n", IS.GT, 4)), "a"),
    (joined(AND, leaf("n", IS.LT, 9), leaf("k", IS.EQ, "Red")), "a"),
]  # fmt: skip


@each(("filters", "wanted"), [*((joined(AND, one), ids) for one, ids in LEAVES), *JOINED])
def test_filters_of_all_operators_and_conditions_select(filters: MetadataFilters, wanted: str, tmp_path: Path) -> None:
    store = LlamaIndexStore()
    store.add([TextNode(id_=name, text=name, metadata=METADATA[name], embedding=list(ROWS[name])) for name in ROWS])
    store.persist(str(tmp_path / "store"))
    for kept in (store, LlamaIndexStore.from_persist_path(tmp_path / "store")):
        assert "".join(sorted(node.node_id for node in kept.get_nodes(filters=filters))) == wanted
        found = kept.query(VectorStoreQuery(query_embedding=[1.0, 0.5], similarity_top_k=9, filters=filters))
        assert "".join(sorted(found.ids)) == wanted
        kept.delete_nodes(filters=filters)
        assert "".join(node.node_id for node in kept.get_nodes()) == "".join(
            name for name in "abc" if name not in wanted
        )


def test_nothing_is_removed_without_ids_or_filters() -> None:
    """Before, `delete_nodes()` and an empty filter removed all nodes."""
    store = LlamaIndexStore()
    store.add([node(name) for name in ROWS])
    for nothing in ({}, {"node_ids": None}, {"filters": MetadataFilters(filters=[])}):
        with pytest.raises(ValueError, match="node_ids and filters are missing"):
            store.delete_nodes(**nothing)
    store.delete_nodes([])
    store.delete("nobody")
    store.delete_nodes(["a", "b"], MetadataFilters(filters=[MetadataFilter(key="name", value="b")]))
    store.delete_nodes(["b"])
    assert [one.node_id for one in store.get_nodes()] == ["a", "c"]


def test_an_unknown_argument_is_an_error_in_every_method() -> None:
    """Before, they were passed over, by LlamaIndex's `adelete_nodes` too."""
    store, query = LlamaIndexStore(), VectorStoreQuery(query_embedding=[0.1, 0.9])
    calls: dict[str, tuple[object, ...]] = {
        "add": ([node("a")],), "delete": ("doc a",), "delete_nodes": (["a"],), "get_nodes": (), "query": (query,),
        "clear": (), "async_add": ([node("a")],), "adelete": ("doc a",), "adelete_nodes": (["a"],), "aget_nodes": (),
        "aquery": (query,), "aclear": (),
    }  # fmt: skip
    store.add([node("b")])
    for name, given in calls.items():
        for unknown in ("where", "namespace"):
            method = partial(getattr(store, name), *given, **{unknown: 1})
            with pytest.raises(TypeError, match=unknown):
                asyncio.run(method()) if iscoroutinefunction(method) else method()
    assert [one.node_id for one in store.get_nodes()] == ["b"]
    with pytest.raises(TypeError, match="LlamaIndexStore has no setting 'n_probe'; it has quantizer, keep"):
        LlamaIndexStore(16, n_probe=3)
