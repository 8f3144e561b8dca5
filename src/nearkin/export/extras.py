"""The packages of other engines, loaded when a target needs them and not before."""

from importlib import import_module
from types import ModuleType

_PACKAGES = {  # module -> (what pip calls it, the extra of nearkin that brings it)
    "lance": ("pylance", "lance"),
    "psycopg": ("psycopg[binary]", "pgvector"),
    "pgvector": ("pgvector", "pgvector"),
    "pgvector.psycopg": ("pgvector", "pgvector"),
    "qdrant_client": ("qdrant-client", "qdrant"),
    "pymilvus": ("pymilvus", "milvus"),
    "opensearchpy": ("opensearch-py", "opensearch"),
    "pyarrow": ("pyarrow", "parquet"),
}


def load_extra(module: str) -> ModuleType:
    """Import an optional module; ImportError that says what to install."""
    package, extra = _PACKAGES[module]
    try:
        return import_module(module)
    except ImportError as error:
        text = f"this needs {package}, which is not installed or cannot be loaded ({error})"
        raise ImportError(f"{text}: pip install 'nearkin[{extra}]'") from error
