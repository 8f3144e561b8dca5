"""A `VectorStore` of LangChain over an `Index`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Self
from uuid import uuid4

import numpy as np

from nearkin._fields import StrPath
from nearkin._types import Record
from nearkin.contracts import Quantizer
from nearkin.integrations.documents import Documents, listed

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
except ModuleNotFoundError as _error:
    raise ImportError(f"LangChainStore needs langchain-core ({_error}): pip install 'nearkin[langchain]'") from _error

Filter = Callable[[Document], bool] | Record | None
"""Which documents may be answers: a function, or values that their metadata have."""


class LangChainStore(VectorStore):
    """Documents whose embeddings are compared by cosine. `quantizer` as in `Index.build`: None for exact search, bytes
    a row, or a quantizer; one that is not fitted is trained on the first texts.

    `store.documents.index` is the index.
    """

    def __init__(self, embedding: Embeddings, quantizer: Quantizer | int | None = None) -> None:
        self.documents: Documents = Documents(quantizer)
        self._embedding = embedding

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[Record] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: object,
    ) -> list[str]:
        """Add texts, or replace those of known ids; returns their ids, new ones for None."""
        texts = list(texts)
        for what, given in (("metadatas", metadatas), ("ids", ids)):
            if given is not None and len(given) != len(texts):
                raise ValueError(f"{what} has length {len(given)}, and texts {len(texts)}; give one for each text")
        names = [str(uuid4()) if name is None else str(name) for name in ids or [None] * len(texts)]
        rows = zip(names, texts, metadatas or [{} for _ in texts], strict=True)
        fresh = [Document(id=name, page_content=text, metadata=metadata) for name, text, metadata in rows]
        records = [{"text": each.page_content, "metadata": each.metadata} for each in fresh]
        self.documents.put(names, records, self._embedding.embed_documents(texts) if texts else [])
        return names

    def delete(self, ids: Sequence[str] | None = None, **_: object) -> bool:
        """Remove the documents of these ids, all for None; unknown ids are passed over."""
        self.documents.remove(list(self.documents.records) if ids is None else ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return [self._document(name) for name in listed(ids) if name in self.documents.records]

    def _document(self, name: str) -> Document:
        record = self.documents.records[name]
        return Document(id=name, page_content=record["text"], metadata=dict(record["metadata"]))

    def _accepts(self, filter: Filter) -> Callable[[str], bool] | None:
        if filter is None:
            return None
        if isinstance(filter, dict):
            wanted, records = filter.items(), self.documents.records
            return lambda name: all(records[name]["metadata"].get(key, wanted) == value for key, value in wanted)
        return lambda name: filter(self._document(name))

    def similarity_search(self, query: str, k: int = 4, *, filter: Filter = None, **_: object) -> list[Document]:
        return [found for found, _ in self.similarity_search_with_score(query, k, filter=filter)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filter = None, **_: object
    ) -> list[tuple[Document, float]]:
        """The nearest documents, and their cosines."""
        return self._near(self._embedding.embed_query(query), k, filter)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter = None, **_: object
    ) -> list[Document]:
        return [found for found, _ in self._near(embedding, k, filter)]

    def _near(self, vector: list[float], k: int, filter: Filter) -> list[tuple[Document, float]]:
        with self.documents.guard.reading():
            found = zip(*self.documents.nearest(vector, k, self._accepts(filter)), strict=True)
            return [(self._document(name), score) for name, score in found]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, *, filter: Filter = None, **_: object
    ) -> list[Document]:
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, filter=filter)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter = None,
        **_: object,
    ) -> list[Document]:
        """k of the `fetch_k` nearest documents that are near to the query and far from each other."""
        with self.documents.guard.reading():
            names, _scores = self.documents.nearest(embedding, fetch_k, self._accepts(filter))
            if self.documents.index is None or not names:
                return []
            vectors = list(self.documents.index.vectors(names))
            chosen = maximal_marginal_relevance(np.array(embedding, np.float32), vectors, lambda_mult, k)
            return [self._document(names[i]) for i in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: (1 + cosine) / 2

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[Record] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        quantizer: Quantizer | int | None = None,
        **_: object,
    ) -> Self:
        store = cls(embedding, quantizer)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def save(self, path: StrPath, *, overwrite: bool = False) -> None:
        """Write texts, metadata and index to a folder; nothing is pickled, and metadata must be JSON."""
        self.documents.save(path, "langchain", overwrite)

    @classmethod
    def load(cls, path: StrPath, embedding: Embeddings) -> Self:
        """The store in a folder that `save` wrote; ValueError for another or a damaged one."""
        store = cls(embedding)
        store.documents = Documents.load(path, "langchain")
        return store
