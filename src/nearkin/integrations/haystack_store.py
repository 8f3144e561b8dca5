"""A document store and a retriever of Haystack over an `Index`."""

from collections.abc import Callable, Sequence
from typing import Self

from nearkin._fields import Extra, StrPath
from nearkin._types import Record
from nearkin.integrations.documents import Documents

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.utils.filters import document_matches_filter
except ModuleNotFoundError as _error:
    raise ImportError(f"HaystackStore needs haystack-ai ({_error}): pip install 'nearkin[haystack]'") from _error

Filters = Record | None
Docs = list[Document]


class HaystackStore:
    """Documents, with or without embedding; they come back without.

    path: the folder of an earlier `save`, whose documents and settings it has.
    settings: `quantizer`, `metric`, `keep_vectors` and `oversample`, see `Documents`; none with `path`.

    `store.documents.index` is the index.
    """

    def __init__(self, *, path: StrPath | None = None, **settings: Extra) -> None:
        self.documents = Documents.of(self, settings) if path is None else Documents.load(path, "haystack", **settings)
        self._given: Record = settings if path is None else {"path": str(path)}

    def __repr__(self) -> str:
        return f"HaystackStore({self.documents!r})"

    def to_dict(self) -> Record:
        return default_to_dict(self, **self._given)

    @classmethod
    def from_dict(cls, data: Record) -> Self:
        return default_from_dict(cls, data)

    def count_documents(self) -> int:
        return len(self.documents.records)

    def filter_documents(self, filters: Filters = None) -> Docs:
        return [self._document(name) for name in self.documents.accepted(self._accepts(filters))]

    def write_documents(self, documents: Docs, policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Add documents, and return their number; those of known ids are an error, or skipped, or replaced, by the
        policy."""
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise ValueError("documents must be a list of haystack's Document")
        with self.documents.lock:
            new = {each.id: each for each in documents}
            again = sorted(set(new) & set(self.documents.records))
            if policy == DuplicatePolicy.SKIP:
                new = {name: each for name, each in new.items() if name not in self.documents.records}
            elif policy != DuplicatePolicy.OVERWRITE and (again or len(new) < len(documents)):
                what = f"ids that the store has, such as {again[0]!r}" if again else "an id twice"
                raise DuplicateDocumentError(f"documents hold {what}; give policy=DuplicatePolicy.OVERWRITE or SKIP")
            records = [each.to_dict(flatten=False) | {"embedding": None} for each in new.values()]
            self.documents.put(list(new), records, [each.embedding for each in new.values()])
            return len(documents) if policy == DuplicatePolicy.OVERWRITE else len(new)

    def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove the documents of these ids; unknown ones are passed over."""
        self.documents.remove(document_ids)

    def embedding_retrieval(self, query_embedding: list[float], filters: Filters = None, top_k: int = 10) -> Docs:
        """The documents nearest to the embedding, with their scores."""
        with self.documents.lock:
            found = zip(*self.documents.nearest(query_embedding, top_k, self._accepts(filters)), strict=True)
            return [self._document(name, score) for name, score in found]

    def save(self, path: StrPath, *, overwrite: bool = False) -> None:
        """Write documents and index to a folder; nothing is pickled, and metadata must be JSON."""
        self.documents.save(path, "haystack", overwrite)

    def _accepts(self, filters: Filters) -> Callable[[str], bool] | None:
        return (lambda name: document_matches_filter(filters, self._document(name))) if filters else None

    def _document(self, name: str, score: float | None = None) -> Document:
        return Document.from_dict({"id": name, **self.documents.records[name], "score": score})


@component
class HaystackRetriever:
    """A component that answers with the documents of a `HaystackStore` nearest to a query's embedding."""

    def __init__(self, document_store: HaystackStore, filters: Filters = None, top_k: int = 10) -> None:
        self.document_store: HaystackStore = document_store
        self.filters: Filters = filters
        self.top_k: int = top_k

    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float], filters: Filters = None, top_k: int | None = None) -> dict[str, Docs]:
        k = self.top_k if top_k is None else top_k
        return {"documents": self.document_store.embedding_retrieval(query_embedding, filters or self.filters, k)}
