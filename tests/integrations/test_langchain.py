"""LangChain's own suite for vector stores, and what it leaves out: filters, diverse answers, saving, wrong calls."""

import asyncio
import inspect
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

kit = pytest.importorskip("langchain_tests.integration_tests.vectorstores", reason="needs langchain-tests")


class Letters(Embeddings):
    """How often each letter occurs."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class TestKit(kit.VectorStoreIntegrationTests):
    @pytest.fixture(params=[None, nk.quantization.ScalarQuantizer(8)], ids=["exact", "codes"])
    def vectorstore(self, request: pytest.FixtureRequest) -> LangChainStore:
        return LangChainStore(self.get_embeddings(), request.param)


@pytest.fixture
def store() -> LangChainStore:
    texts = ["red apple", "brown fox", "apple pie", "dogs"]
    return LangChainStore.from_texts(texts, Letters(), [{"n": n} for n in range(4)], ids=list("abcd"))


def test_answers_are_filtered_scored_and_diverse(store: LangChainStore) -> None:
    found = store.similarity_search_with_score("apple", k=9)
    assert {document.id for document, _ in found[:2]} == {"a", "c"}
    assert len(found) == 4
    for filter in (lambda document: document.metadata["n"] == 3, {"n": 3}):
        (dogs,) = store.similarity_search("apple", filter=filter)
        assert dogs.page_content == "dogs"
        assert store.max_marginal_relevance_search("apple", filter=filter) == [dogs]
    assert store.similarity_search("apple", filter={"other": 1}) == []
    assert store.similarity_search_by_vector(Letters().embed_query("dogs"), 1)[0].id == "d"
    diverse = store.max_marginal_relevance_search("apple", k=2, lambda_mult=0.1)
    assert {"a", "c"} != {document.id for document in diverse}
    assert store.as_retriever(search_kwargs={"k": 1}).invoke("dog")[0].id == "d"
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
    again.save(tmp_path / "store")
    assert LangChainStore.load(tmp_path / "store", Letters()).get_by_ids(["a", "d"])[0].metadata == {"n": [1, None]}
    assert "d" in nk.Index.load(tmp_path / "store" / "index")
    again.add_texts(["z"], [{"when": object()}], ids=["z"])
    with pytest.raises(TypeError, match="document 'z' cannot be saved"):
        again.save(tmp_path / "store")
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


def test_no_texts_missing_ids_and_codes() -> None:
    store = LangChainStore.from_texts([], Letters(), quantizer=4)
    assert store.add_texts([]) == []
    names = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefghijklmnop"] * 8
    made = store.add_texts([f"{name} {i}" for i, name in enumerate(names)], ids=[None, "known", *[None] * 1022])
    assert (made[1], len(set(made))) == ("known", 1024)
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


METADATA = {
    "a": {"n": 1, "k": "x", "tags": ["p"]}, "b": {"n": 5, "k": "y", "seen": None},
    "c": {"n": 9, "k": "z"}, "d": {"n": "9", "day": "2024-05-01"},
}  # fmt: skip
FILTERS = [
    ({}, "abcd"), ({"n": 5}, "b"), ({"n": 5, "k": "x"}, ""), ({"n": {"$eq": "9"}}, "d"), ({"n": {"$ne": 5}}, "acd"),
    ({"n": {"$gt": 4}}, "bc"), ({"n": {"$gte": 5, "$lt": 9}}, "b"), ({"n": {"$lte": 5}}, "ab"), ({"n": [1, "9"]}, "ad"),
    ({"k": {"$in": ["x", "q"]}}, "a"), ({"k": {"$nin": ["x", "y"]}}, "cd"), ({"k": {"$ne": "x"}}, "bcd"),
    ({"day": {"$gt": "2024-01-31"}}, "d"), ({"seen": None}, "b"), ({"seen": {"$exists": True}}, "b"),
    ({"k": {"$exists": False}}, "d"), ({"missing": 1}, ""), ({"missing": {"$lt": 1}}, ""),
    ({"tags": {"$eq": ["p"]}}, "a"),
    ({"$or": [{"n": 1}, {"k": "z"}]}, "ac"), ({"$and": [{"n": {"$gt": 0}}, {"$not": {"k": "y"}}]}, "ac"),
    ({"$not": {"$or": [{"k": "x"}, {"n": "9"}]}}, "bc"), ({"n": {"$not": {"$gt": 4}}}, "ad"),
    ({"k": "x", "$or": [{"n": 1}, {"n": 9}]}, "a"), ({"n": {"$or": [{"$lt": 2}, {"$gt": 8}]}}, "ac"),
    (lambda document: document.metadata["n"] == "9", "d"),
]  # fmt: skip
NO_FILTERS = [
    "n", ["n"], 5, {"$n": 5}, {"n": {"$near": 5}}, {"n": {"gt": 5}}, {"n": {}}, {"n": {"$in": 5}}, {"n": {"$in": []}},
    {"$and": []}, {"$or": {"n": 1}}, {"$and": [{}]}, {"$not": {}}, {"$not": [{"n": 1}]}, {"n": {"$exists": 1}},
    {"$gt": 4}, {"k": "q", "n": {"$wrong": 1}}, {"$or": [{"k": "x"}, {"n": {"$wrong": 1}}]},
]  # fmt: skip


@pytest.fixture
def labelled() -> LangChainStore:
    return LangChainStore.from_texts(list(METADATA), Letters(), list(METADATA.values()), ids=list(METADATA))


@pytest.mark.parametrize(("filter", "wanted"), FILTERS, ids=range(len(FILTERS)))
def test_filters_select_in_every_search_and_after_load(
    labelled: LangChainStore, filter: Any, wanted: str, tmp_path: Path
) -> None:
    labelled.save(tmp_path / "store")
    for store in (labelled, LangChainStore.load(tmp_path / "store", Letters())):
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
        labelled.delete(filter=filter)
        assert sorted(labelled.documents.records) == [name for name in "abcd" if name not in wanted]


@pytest.mark.parametrize("filter", NO_FILTERS, ids=str)
def test_what_is_no_filter_selects_and_deletes_nothing(labelled: LangChainStore, filter: Any) -> None:
    """Before, operators were values that no document has."""
    for store in (labelled, LangChainStore(Letters())):
        for call in (
            lambda store=store: store.similarity_search("a", filter=filter),
            lambda: labelled.delete(filter=filter),
        ):
            with pytest.raises((TypeError, ValueError), match="filter"):
                call()
    assert len(labelled.documents.records) == 4


def test_nothing_is_deleted_without_ids_or_a_filter(labelled: LangChainStore) -> None:
    """Before, `delete(filter=...)` and any unknown argument deleted all documents."""
    for nothing in ({}, {"ids": None}, {"filter": None}, {"filter": {}}):
        with pytest.raises(ValueError, match="ids and filter are missing"):
            labelled.delete(**nothing)
    assert labelled.delete([])
    assert labelled.delete(["nobody", "a", "a"])
    assert labelled.delete(["a"])
    assert labelled.delete(["b", "c"], filter={"n": {"$gt": 5}})
    assert sorted(labelled.documents.records) == ["b", "d"]
    assert [each.id for each in labelled.get_by_ids(["d", "nobody", "b"])] == ["d", "b"]


UNKNOWN: dict[str, tuple[Any, ...]] = {
    "similarity_search": ("x",), "similarity_search_with_score": ("x",), "similarity_search_by_vector": ([1.0] * 26,),
    "similarity_search_with_relevance_scores": ("x",), "max_marginal_relevance_search": ("x",),
    "max_marginal_relevance_search_by_vector": ([1.0] * 26,), "add_texts": (["x"],),
    "add_documents": ([Document(page_content="x")],), "delete": (["a"],), "from_texts": (["x"], Letters()),
    "from_documents": ([Document(page_content="x")], Letters()), "search": ("x", "similarity"), "get_by_ids": (["a"],),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_argument_is_an_error_in_every_method(labelled: LangChainStore, name: str) -> None:
    """Before, they were passed over: a search by `where=` found documents of everybody."""
    for argument in ("where", "filters", "namespace"):
        with pytest.raises(TypeError, match=argument):
            getattr(labelled, name)(*UNKNOWN[name], **{argument: {"n": 1}})
        with pytest.raises(TypeError, match=argument):
            asyncio.run(getattr(labelled, f"a{name}")(*UNKNOWN[name], **{argument: {"n": 1}}))
    assert len(labelled.documents.records) == 4


def test_every_method_with_any_arguments_is_tried() -> None:
    takes_any = {
        name for name, method in inspect.getmembers(LangChainStore, callable)
        if not name.startswith("_") and "**" in str(inspect.signature(method))
    }  # fmt: skip
    assert takes_any <= {*UNKNOWN, *(f"a{name}" for name in UNKNOWN), "as_retriever"}


def test_a_retriever_takes_what_langchain_knows(labelled: LangChainStore) -> None:
    for unknown in ({"filter": {"n": 1}}, {"k": 2}):
        with pytest.raises(TypeError, match=r"as_retriever has no argument .*search_kwargs"):
            labelled.as_retriever(**unknown)
    with pytest.raises(TypeError, match="where"):
        labelled.as_retriever(search_kwargs={"where": {"n": 1}}).invoke("a")
    above = labelled.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9, "filter": {"n": {"$lt": 9}}}
    )
    assert [each.id for each in above.invoke("ab")] == []
    assert [each.id for each in above.invoke("aaab")] == ["a"]
    diverse = labelled.as_retriever(
        search_type="mmr", search_kwargs={"k": 2, "fetch_k": 3, "filter": {"n": {"$gt": 0}}}
    )
    assert len(diverse.invoke("a")) == 2


def test_relevance_is_the_cosine(labelled: LangChainStore) -> None:
    """As Chroma has it, so that thresholds of others hold."""
    found = labelled.similarity_search_with_relevance_scores("aab", k=2)
    assert [score for _, score in found] == pytest.approx([2 / 5**0.5, 1 / 5**0.5])
