"""LangChain's own suite for vector stores, and what it leaves out: filters, diverse answers, saving, wrong calls."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

import nearkin as nk

pytest.importorskip("langchain_core", reason="needs langchain-core")
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from nearkin.integrations import LangChainStore, documents
from tests.covering import each

kit = pytest.importorskip("langchain_tests.integration_tests.vectorstores", reason="needs langchain-tests")


class Letters(Embeddings):
    """How often each letter occurs."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class TestKit(kit.VectorStoreIntegrationTests):
    @pytest.fixture(params=[None, 2], ids=["exact", "bytes"])
    def vectorstore(self, request: pytest.FixtureRequest) -> LangChainStore:
        return LangChainStore(self.get_embeddings(), request.param)


@pytest.fixture
def store() -> LangChainStore:
    texts = ["red apple", "brown fox", "apple pie", "dogs"]
    return LangChainStore.from_texts(texts, Letters(), [{"n": n} for n in range(4)], ids=list("abcd"))


def test_answers_are_scored_and_diverse(store: LangChainStore) -> None:
    found = store.similarity_search_with_score("apple", k=9)
    assert {document.id for document, _ in found[:2]} == {"a", "c"}
    assert len(found) == 4
    assert store.similarity_search_by_vector(Letters().embed_query("dogs"), 1)[0].id == "d"
    diverse = store.max_marginal_relevance_search("apple", k=2, lambda_mult=0.1)
    assert {"a", "c"} != {document.id for document in diverse}
    (best, relevance), *_ = store.similarity_search_with_relevance_scores("dogs", k=1)
    assert (best.id, relevance) == ("d", pytest.approx(1))


def test_a_store_comes_back_with_texts_and_metadata(store: LangChainStore, tmp_path: Path) -> None:
    store.save(tmp_path / "store")
    with pytest.raises(ValueError, match="exists"):
        LangChainStore.from_texts(["x"], Letters()).save(tmp_path / "store")
    again = LangChainStore.load(tmp_path / "store", Letters())
    assert again.similarity_search_with_score("apple", k=3) == store.similarity_search_with_score("apple", k=3)
    again.delete(["a"])
    again.add_texts(["pears\nand\u2028more"], [{"n": [1, None]}], ids=["d"])
    again.save(tmp_path / "store", overwrite=True)
    assert LangChainStore.load(tmp_path / "store", Letters()).get_by_ids(["a", "d"])[0].metadata == {"n": [1, None]}
    assert "d" in nk.Index.load(tmp_path / "store" / "index")
    again.add_texts(["z"], [{"when": object()}], ids=["z"])
    with pytest.raises(TypeError, match="not JSON serializable"):
        again.save(tmp_path / "store", overwrite=True)
    LangChainStore(Letters()).save(tmp_path / "empty")
    assert LangChainStore.load(tmp_path / "empty", Letters()).similarity_search("x") == []
    lines = tmp_path / "store" / "documents.jsonl"
    lines.write_text(lines.read_text().replace("pears", "peers"))
    with pytest.raises(ValueError, match="documents"):
        LangChainStore.load(tmp_path / "store", Letters())


@pytest.mark.parametrize(("texts", "others"), [
    (["x", "y"], {"metadatas": [{}]}), (["x", "y"], {"metadatas": []}), (["x"], {"metadatas": [None]}),
    (["x", "y"], {"ids": ["c"]}), (["x", "y"], {"ids": []}), (["x", "y"], {"ids": ["c", "c"]}),
])  # fmt: skip
def test_a_wrong_call_changes_nothing(store: LangChainStore, texts: list[str], others: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"metadata|ids"):
        store.add_texts(texts, **others)
    assert {found.id for found in store.similarity_search("x", k=9)} == set("abcd")


def test_no_texts_missing_ids_and_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "ENOUGH", 300)
    store = LangChainStore.from_texts([], Letters(), quantizer=4)
    assert store.add_texts([]) == []
    names = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefghijklmnop"] * 3
    made = store.add_texts([f"{name} {i}" for i, name in enumerate(names)], ids=[None, "known", *[None] * 382])
    assert (made[1], len(set(made))) == ("known", 384)
    assert store.documents.index.bytes_per_vector <= 5
    assert np.isfinite(store.similarity_search_with_score("abc", k=3)[0][1])
    store.delete(made)
    assert store.similarity_search("abc") == []


def test_threads_share_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asynchronous methods are threads. Before, each of the first made an index, and only the last one stayed."""
    build = documents.Index.build
    monkeypatch.setattr(documents.Index, "build", lambda *given, **more: (sleep(0.05), build(*given, **more))[1])
    store = LangChainStore(Letters())
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda name: store.add_texts([name, name * 2]), "abcdefgh"))
        searched = pool.map(lambda name: store.similarity_search(name, k=9), "abcdefgh" * 9)
        removed = pool.map(lambda names: store.delete(names[:1]), made)
    assert all(searched)
    assert all(removed)
    assert len(store.similarity_search("a", k=99)) == 8
    for call in (store.delete, store.get_by_ids):  # its letters were ids
        with pytest.raises(TypeError, match=r"ids is 'ab'; it must be a list: \['ab'\]"):
            call("ab")


METADATA = {"a": {"n": 1, "k": "x"}, "b": {"n": 5, "k": "y", "seen": None}, "c": {"n": 9, "k": "z"}, "d": {"n": "9"}}
FILTERS = [
    ({}, "abcd"), ({"n": 5}, "b"), ({"n": 5, "k": "x"}, ""), ({"n": "9"}, "d"), ({"seen": None}, "b"),
    ({"missing": 1}, ""), (lambda document: document.metadata.get("k", "z") >= "y", "bcd"),
]  # fmt: skip
NO_FILTERS = ["n", ["n"], 5, {"$or": [{"n": 5}]}, {"n": {"$gt": 4}}, {"n": (1, 5)}, {"k": {"x"}}, {"k": "x", "$n": 1}]


def labelled() -> LangChainStore:
    return LangChainStore.from_texts(list(METADATA), Letters(), list(METADATA.values()), ids=list(METADATA))


@each(("filter", "wanted"), FILTERS)
def test_filters_select_in_every_search_and_after_load(filter: Any, wanted: str, tmp_path: Path) -> None:
    labelled().save(tmp_path / "store")
    for store in (labelled(), LangChainStore.load(tmp_path / "store", Letters())):
        searches = (
            store.similarity_search("a", 9, filter=filter),
            store.max_marginal_relevance_search("a", 9, filter=filter),
            store.similarity_search_by_vector(Letters().embed_query("a"), 9, filter=filter),
            store.as_retriever(search_kwargs={"k": 9, "filter": filter}).invoke("a"),
            asyncio.run(store.asimilarity_search("a", 9, filter=filter)),
        )
        for found in searches:
            assert sorted(document.id for document in found) == list(wanted)
        if filter != {}:
            store.delete(filter=filter)
            assert sorted(store.documents.records) == [name for name in "abcd" if name not in wanted]


@each("filter", NO_FILTERS)
def test_what_is_no_filter_selects_and_deletes_nothing(filter: Any) -> None:
    store = labelled()
    for call in (store.similarity_search, LangChainStore(Letters()).similarity_search, store.delete):
        with pytest.raises(TypeError, match="filter is"):
            call("a" if call != store.delete else None, filter=filter)
    with pytest.raises(TypeError, match=r"filter\['k'\] is 5; all documents have other types, such as 'x'"):
        store.delete(filter={"k": 5})
    assert len(store.documents.records) == 4


def test_nothing_is_deleted_without_ids_or_a_filter() -> None:
    """Before, `delete(filter=...)` and any unknown argument deleted all documents."""
    store = labelled()
    for nothing in ({}, {"ids": None}, {"filter": None}, {"filter": {}}):
        with pytest.raises(ValueError, match="ids and filter are missing"):
            store.delete(**nothing)
    assert store.delete(["nobody", "a", "a"])
    assert store.delete(["b", "c"], filter={"n": 9})
    assert sorted(store.documents.records) == ["b", "d"]
    assert [each.id for each in store.get_by_ids(["d", "nobody", "b"])] == ["d", "b"]


UNKNOWN: dict[str, tuple[Any, ...]] = {
    "similarity_search": ("x",), "similarity_search_with_score": ("x",), "similarity_search_by_vector": ([1.0] * 26,),
    "similarity_search_with_relevance_scores": ("x",), "max_marginal_relevance_search": ("x",),
    "max_marginal_relevance_search_by_vector": ([1.0] * 26,), "add_texts": (["x"],),
    "add_documents": ([Document(page_content="x")],), "delete": (["a"],), "from_texts": (["x"], Letters()),
    "from_documents": ([Document(page_content="x")], Letters()), "search": ("x", "similarity"), "get_by_ids": (["a"],),
}  # fmt: skip


@each("name", UNKNOWN)
def test_an_unknown_argument_is_an_error_in_every_method(name: str) -> None:
    """Before, they were passed over: a search by `where=` found documents of everybody."""
    store = labelled()
    for argument in ("where", "filters", "namespace"):
        with pytest.raises(TypeError, match=argument):
            getattr(store, name)(*UNKNOWN[name], **{argument: {"n": 1}})
        with pytest.raises(TypeError, match=argument):
            asyncio.run(getattr(store, f"a{name}")(*UNKNOWN[name], **{argument: {"n": 1}}))
    assert len(store.documents.records) == 4


def test_a_retriever_takes_what_langchain_knows() -> None:
    store = labelled()
    for unknown in ({"filter": {"n": 1}}, {"k": 2}):
        with pytest.raises(TypeError, match=r"as_retriever has no argument .*search_kwargs"):
            store.as_retriever(**unknown)
    with pytest.raises(TypeError, match="where"):
        store.as_retriever(search_kwargs={"where": {"n": 1}}).invoke("a")
    above = {"score_threshold": 0.9, "filter": lambda document: document.metadata["n"] != 9}
    near = store.as_retriever(search_type="similarity_score_threshold", search_kwargs=above)
    assert [each.id for each in near.invoke("ab")] == []
    assert [each.id for each in near.invoke("aaab")] == ["a"]
    diverse = store.as_retriever(search_type="mmr", search_kwargs={"k": 2, "fetch_k": 3})
    assert len(diverse.invoke("a")) == 2
    (_, one), (_, other) = store.similarity_search_with_relevance_scores("aab", k=2)
    assert [one, other] == pytest.approx([2 / 5**0.5, 1 / 5**0.5]), "the cosine, as Chroma has it"
