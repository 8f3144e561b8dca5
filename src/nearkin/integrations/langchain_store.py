"""A `VectorStore` of LangChain over an `Index`."""

# pyright: reportIncompatibleMethodOverride=false
# LangChain's methods take any argument and pass it over: here an unknown one is a TypeError.

from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy as np

from nearkin._fields import Extra, StrPath
from nearkin._types import Record
from nearkin.contracts import Quantizer
from nearkin.integrations.documents import Documents, check_comparable, listed

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
except ModuleNotFoundError as _error:
    raise ImportError(f"LangChainStore needs langchain-core ({_error}): pip install 'nearkin[langchain]'") from _error

Metadatas = list[Record] | None
Ids = Sequence[str | None] | None
Docs = list[Document]
Scored = list[tuple[Document, float]]
Filter = Callable[[Document], bool] | Record | None
"""Which documents may be answers: a function of a document, or values that its metadata equal."""


class LangChainStore(VectorStore):
    """Documents whose embeddings are compared by cosine.

    `quantizer`: None for exact search; bytes a vector, for codes that are trained once 10,000 documents are there; or a
    fitted quantizer. `keep_vectors`, `oversample`: rescoring, as in `Index.build` and
    `Index.search`. `store.documents.index` is the index. An argument that a method does not know is a TypeError.
    """

    def __init__(self, embedding: Embeddings, quantizer: Quantizer | int | None = None, **rescoring: Extra) -> None:
        self.documents: Documents = Documents.of(self, {"quantizer": quantizer, **rescoring}, metric="cosine")
        self._embedding = embedding

    def __repr__(self) -> str:
        return f"LangChainStore({self.documents!r})"

    @property
    def embeddings(self) -> Embeddings:
        return self._embedding

    def add_texts(self, texts: Iterable[str], metadatas: Metadatas = None, *, ids: Ids = None) -> list[str]:
        """Add texts, or replace those of known ids; returns their ids, new ones for None."""
        texts = list(texts)
        names = listed([None] * len(texts) if ids is None else ids)
        for what, given in (("metadatas", metadatas), ("ids", names)):
            if given is not None and len(given) != len(texts):
                raise ValueError(f"{what} has length {len(given)}, and texts {len(texts)}; give one for each text")
        rows = zip(texts, metadatas or [{} for _ in texts], strict=True)
        fresh = [Document(page_content=text, metadata=metadata) for text, metadata in rows]
        records = [{"text": each.page_content, "metadata": each.metadata} for each in fresh]
        self.documents.put(names, records, self._embedding.embed_documents(texts) if texts else [])
        return names

    def delete(self, ids: Sequence[str] | None = None, *, filter: Filter = None) -> bool:
        """Remove the documents of these ids, those that the filter accepts, or of these ids those that it accepts;
        unknown ids are passed over. ValueError without ids and filter: `ids=list(store.documents.records)` are all."""
        if ids is None and not filter:
            raise ValueError("ids and filter are missing; give one, or ids=list(store.documents.records) for all")
        with self.documents.lock:
            self.documents.remove(self.documents.accepted(self._accepts(filter), ids))
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> Docs:
        return [self._document(name) for name in listed(ids) if name in self.documents.records]

    def _document(self, name: str) -> Document:
        record = self.documents.records[name]
        return Document(id=name, page_content=record["text"], metadata=dict(record["metadata"]))

    def _accepts(self, filter: Filter) -> Callable[[str], bool] | None:
        if filter is None or filter == {}:
            return None
        if callable(filter):
            return lambda name: filter(self._document(name))
        values = filter.items() if isinstance(filter, dict) else ()
        many = [key for key, value in values if isinstance(value, Iterable) and not isinstance(value, str)]
        if not values or many or any(str(key).startswith("$") for key, _ in values):
            raise TypeError(f"filter is {filter!r}; give single values, or lambda doc: doc.metadata['page'] in (3, 5)")
        check_comparable(dict(values), [record["metadata"] for record in self.documents.records.values()])
        return lambda name: values <= self.documents.records[name]["metadata"].items()

    def similarity_search(self, query: str, k: int = 4, *, filter: Filter = None) -> Docs:
        return [found for found, _ in self.similarity_search_with_score(query, k, filter=filter)]

    def similarity_search_with_score(self, query: str, k: int = 4, *, filter: Filter = None) -> Scored:
        """The nearest documents, and their cosines."""
        return self._near(self._embedding.embed_query(query), k, filter)

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, *, filter: Filter = None) -> Docs:
        return [found for found, _ in self._near(embedding, k, filter)]

    def _near(self, vector: list[float], k: int, filter: Filter) -> Scored:
        with self.documents.lock:
            found = zip(*self.documents.nearest(vector, k, self._accepts(filter)), strict=True)
            return [(self._document(name), score) for name, score in found]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, *, filter: Filter = None
    ) -> Docs:
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, filter=filter)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, *, filter: Filter = None
    ) -> Docs:
        """k of the `fetch_k` nearest documents that are near to the query and far from each other."""
        with self.documents.lock:
            names, _scores = self.documents.nearest(embedding, fetch_k, self._accepts(filter))
            vectors = list(self.documents.index.vectors(names)) if self.documents.index and names else []
            chosen = maximal_marginal_relevance(np.array(embedding, np.float32), vectors, lambda_mult, k)
            return [self._document(names[i]) for i in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: min(cosine, 1.0)  # as Chroma has it; rounding may exceed 1

    def as_retriever(self, **options: Extra) -> VectorStoreRetriever:
        if unknown := sorted(set(options) - set(VectorStoreRetriever.model_fields)):
            raise TypeError(f"as_retriever has no argument {unknown[0]!r}; type a search's as search_kwargs={{...}}")
        return super().as_retriever(**options)

    @classmethod
    def from_texts(
        cls, texts: list[str], embedding: Embeddings, metadatas: Metadatas = None, *, ids: Ids = None, **settings: Extra
    ) -> Self:
        """A store of these texts; `settings` are arguments of the class: `quantizer`, `keep_vectors`, `oversample`."""
        store = cls(embedding, **settings)
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
