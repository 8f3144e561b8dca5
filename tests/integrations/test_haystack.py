"""Haystack's own suite for document stores, and what it leaves out: retrieval in a pipeline, saving."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("haystack", reason="needs haystack-ai")
from haystack import Document, Pipeline
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.testing.document_store import DocumentStoreBaseExtendedTests

from nearkin.integrations import HaystackRetriever, HaystackStore


class TestKit(DocumentStoreBaseExtendedTests):
    @pytest.fixture
    def document_store(self) -> HaystackStore:
        return HaystackStore(metric="l2")  # the suite has embeddings of zeros

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        """Documents come back without embeddings."""
        assert received == [replace(each, embedding=None) for each in expected]

    def test_write_documents(self, document_store: HaystackStore) -> None:
        document = Document(content="test")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document], policy=DuplicatePolicy.FAIL)


def test_a_pipeline_retrieves_what_was_saved(tmp_path: Path) -> None:
    rows = [(1.0, 0.0), (0.0, 1.0), (0.7, 0.7)]
    documents = [Document(content=f"{i}", meta={"n": i}, embedding=list(row)) for i, row in enumerate(rows)]
    store = HaystackStore()
    store.write_documents([*documents, Document(content="no embedding")])
    store.save(tmp_path / "store")
    again = HaystackStore.from_dict(HaystackStore(path=tmp_path / "store").to_dict())
    assert again.count_documents() == 4
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackRetriever(again, top_k=2))
    found = pipeline.run({"retriever": {"query_embedding": [0.1, 0.9]}})["retriever"]["documents"]
    assert [each.content for each in found] == ["1", "2"]
    assert found[0].score == pytest.approx(0.9939, abs=1e-3)
    wanted = {"field": "meta.n", "operator": "<", "value": 1}
    assert [each.content for each in again.embedding_retrieval([0.1, 0.9], wanted)] == ["0"]
