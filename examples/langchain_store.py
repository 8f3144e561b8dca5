"""How do I search nearkin's codes from LangChain? A `VectorStore` over an `Index` (pip install langchain-core)."""

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

import nearkin as nk


class NearkinStore(VectorStore):
    """Documents whose embeddings lie in an `nk.Index`, compared by cosine; `quantizer` learns from the first texts."""

    def __init__(self, embedding: Embeddings, quantizer: Any = None) -> None:
        self._embedding, self._quantizer = embedding, quantizer
        self.index: nk.Index | None = None
        self._documents: dict[str, Document] = {}

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    def add_texts(
        self, texts: Iterable[str], metadatas: list[dict] | None = None, *, ids: list[str] | None = None, **_: Any
    ) -> list[str]:
        """Add texts, or replace those whose ids are known; returns their ids, made for those that have none."""
        texts = list(texts)
        for what, given in (("metadatas", metadatas), ("ids", ids)):
            if given is not None and len(given) != len(texts):
                raise ValueError(f"{what} has {len(given)} entries for {len(texts)} texts; give one for each")
        names = [str(name or uuid4()) for name in ids or [None] * len(texts)]
        if len(set(names)) < len(names):
            raise ValueError("ids holds an id twice; give each text its own")
        rows = zip(names, texts, metadatas or [{} for _ in texts], strict=True)
        fresh = {name: Document(id=name, page_content=text, metadata=metadata) for name, text, metadata in rows}
        if not fresh:
            return []
        X = np.array(self._embedding.embed_documents(texts), np.float32)
        if self.index is None:
            self.index = nk.Index.build(X, self._quantizer, names, metric="cosine")
        else:
            self.index.upsert(X, names)
        self._documents |= fresh
        return names

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Remove the documents of these ids, all without any; unknown ids are passed over."""
        known = set(self._documents)
        gone = known if ids is None else known & set(map(str, ids))
        if self.index is not None and gone:
            self.index.remove(sorted(gone))
        for name in gone:
            del self._documents[name]
        return True

    def get_by_ids(self, ids: Iterable[str], /) -> list[Document]:
        return [self._documents[name] for name in ids if name in self._documents]

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        return [document for document, _ in self.similarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Callable[[Document], bool] | None = None, **_: Any
    ) -> list[tuple[Document, float]]:
        """The nearest documents, and their cosines; `filter` chooses those that may be answers."""
        among = [name for name, found in self._documents.items() if filter is None or filter(found)]
        if self.index is None or not among:
            return []
        Q = np.array([self._embedding.embed_query(query)], np.float32)
        scores, names = self.index.search(Q, k, among=None if filter is None else among)
        return [(self._documents[n], float(s)) for n, s in zip(names[0].tolist(), scores[0], strict=True) if n]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: (1 + cosine) / 2

    @classmethod
    def from_texts(
        cls, texts: list[str], embedding: Embeddings, metadatas: list[dict] | None = None, **options: Any
    ) -> "NearkinStore":
        store = cls(embedding, options.get("quantizer"))
        store.add_texts(texts, metadatas, ids=options.get("ids"))
        return store


class Letters(Embeddings):
    """A stand-in for a real encoder: how often each letter occurs."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def main() -> None:
    texts = ["a small red apple", "the quick brown fox", "fix the box", "pears and apples"]
    store = NearkinStore.from_texts(texts, Letters(), [{"fruit": "pp" in text or "pear" in text} for text in texts])
    print("nearest to 'apple':", [found.page_content for found in store.similarity_search("apple", k=2)])
    fruit = store.similarity_search("fox", k=3, filter=lambda document: document.metadata["fruit"])
    print("nearest fruit to 'fox':", [found.page_content for found in fruit])


if __name__ == "__main__":
    main()
