"""LangChain's own suite for vector stores, and what it leaves out: filters, diverse answers, saving, wrong calls."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

import nearkin as nk

pytest.importorskip("langchain_core", reason="needs langchain-core")
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
    names = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefghijklmnop"] * 3
    made = store.add_texts([f"{name} {i}" for i, name in enumerate(names)], ids=[None, "known", *[None] * 382])
    assert (made[1], len(set(made))) == ("known", 384)
    assert store.documents.index.bytes_per_vector <= 5
    assert np.isfinite(store.similarity_search_with_score("abc", k=3)[0][1])
    store.delete()
    assert store.similarity_search("abc") == []


def test_threads_share_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asynchronous methods are threads. Before, each of the first made an index, and only the last one stayed."""
    build = documents.Index.build
    monkeypatch.setattr(documents.Index, "build", lambda *given: (sleep(0.05), build(*given))[1])
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
