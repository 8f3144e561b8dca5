"""Haystack's own suite for document stores, and what it leaves out: retrieval in a pipeline, saving."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("haystack", reason="needs haystack-ai")
from haystack import Document, Pipeline
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.testing.document_store import DocumentStoreBaseTests

from nearkin.integrations import HaystackRetriever, HaystackStore


class TestKit(DocumentStoreBaseTests):
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


@pytest.fixture
def store() -> HaystackStore:
    store = HaystackStore()
    rows = [(1.0, 0.0), (0.0, 1.0), (0.7, 0.7)]
    store.write_documents([Document(id=str(n), meta={"n": n}, embedding=list(row)) for n, row in enumerate(rows)])
    return store


def test_nothing_is_deleted_without_ids(store: HaystackStore) -> None:
    store.delete_documents([])
    store.delete_documents(["nobody", "0", "0"])
    assert sorted(each.meta["n"] for each in store.filter_documents()) == [1, 2]
    with pytest.raises(TypeError, match="must be a list"):
        store.delete_documents("12")


def test_joined_filters_select_also_after_load(store: HaystackStore, tmp_path: Path) -> None:
    above, below = ({"field": "meta.n", "operator": sign, "value": n} for sign, n in ((">", 0), ("<", 2)))
    both = {"operator": "AND", "conditions": [above, below]}
    store.save(tmp_path / "store")
    for each in (store, HaystackStore(path=tmp_path / "store")):
        for filters, wanted in ((both, [1]), ({"operator": "NOT", "conditions": [both]}, [0, 2])):
            found = each.embedding_retrieval([1.0, 0.2], filters)
            assert sorted(one.meta["n"] for one in found) == wanted


def test_an_unknown_argument_is_an_error(store: HaystackStore, tmp_path: Path) -> None:
    store.save(tmp_path / "store")
    for wrong in ({"n_probe": 3}, {"n_bytes": 4}, {"path": tmp_path / "store", "metric": "l2"}):
        with pytest.raises(TypeError, match=r"HaystackStore has no setting 'n_|metric"):
            HaystackStore(**wrong)
    calls: dict[str, tuple[object, ...]] = {
        "count_documents": (), "filter_documents": (), "write_documents": ([],), "delete_documents": (["0"],),
        "save": (tmp_path,), "embedding_retrieval": ([1.0, 0.0],),
    }  # fmt: skip
    for name, given in calls.items():
        with pytest.raises(TypeError, match="where"):
            getattr(store, name)(*given, where=1)


def test_settings_come_back() -> None:
    settings = {"quantizer": 2, "metric": "ip", "keep_vectors": "float16", "oversample": 30}
    store = HaystackStore.from_dict(HaystackStore(**settings).to_dict())
    store.write_documents([Document(id="one", embedding=[1.0] * 8), Document(id="none")])
    assert [getattr(store.documents, name) for name in settings] == list(settings.values())
    with pytest.raises(ValueError, match="k"):
        HaystackRetriever(store).run([1.0] * 8, top_k=0)
