"""The targets, by the names that the command line uses."""

import inspect
from importlib import import_module
from typing import Any

from nearkin._check import check_choice
from nearkin.export.target import Target

TARGETS = {  # name -> (module, class); a module loads its engine's package when it is used
    "faiss-shards": ("faiss_shards", "FaissShards"),
    "lance": ("lance", "Lance"),
    "pgvector": ("pgvector", "Pgvector"),
    "qdrant": ("qdrant", "Qdrant"),
    "milvus": ("milvus", "Milvus"),
    "opensearch": ("opensearch", "OpenSearch"),
}


def make_target(to: str, /, **options: Any) -> Target:
    """The target `to` with those options that are not None.

    ValueError for an unknown name, an option that the target does not take, and one that it needs and did not get.
    """
    module, cls = TARGETS[check_choice(to, "target", TARGETS)]
    kind = getattr(import_module(f"nearkin.export.{module}"), cls)
    given = {option: value for option, value in options.items() if value is not None}
    known = inspect.signature(kind).parameters
    for option in given:
        if option not in known:
            raise ValueError(f"{option} is no option of {to}; it takes {', '.join(known)}")
    missing = [option for option, value in known.items() if value.default is value.empty and option not in given]
    if missing:
        raise ValueError(f"{to} needs {', '.join(missing)}; it takes {', '.join(known)}")
    return kind(**given)
