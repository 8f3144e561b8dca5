"""Stores of documents for LangChain, LlamaIndex and Haystack, each over an `Index`. Each needs its library, for example
pip install 'nearkin[langchain]'."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.integrations.haystack_store import HaystackRetriever as HaystackRetriever
    from nearkin.integrations.haystack_store import HaystackStore as HaystackStore
    from nearkin.integrations.langchain_store import LangChainStore as LangChainStore
    from nearkin.integrations.llama_index_store import LlamaIndexStore as LlamaIndexStore

lazily(__name__, __file__)
