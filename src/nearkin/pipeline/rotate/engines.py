"""What a rotation does in other engines: the codec to learn it for, or why it gains nothing. One line an engine."""

from collections.abc import Callable
from typing import NamedTuple

import faiss

from nearkin._check import check_choice

FACTORY = "faiss:"  # followed by the string of a FAISS index


class Engine(NamedTuple):
    """How an engine codes rows of d columns, as `nk.Rotation` takes it; `refused` says why turning gains nothing."""

    codes: str
    codec: Callable[[int], str] | None = None
    refused: str | None = None


def _lance(d: int) -> str:
    """Lance cuts vectors into d / 16 parts of 8 bits, or d / 8 where 16 does not divide d."""
    for width in (16, 8):
        if d % width == 0:
            return f"pq{d // width}"
    raise ValueError(f"--for lance-ivf-pq needs a number of columns that 8 divides; the vectors have {d}")


_ITSELF = "it turns the vectors by a random rotation itself, so that one made before it is undone"
ENGINES: dict[str, Engine] = {
    "pgvector-bit": Engine("signs, by Hamming distance", lambda d: "sign"),
    "pgvector-halfvec": Engine(
        "half floats", refused="half floats keep 11 bits of every number, whichever way the vectors are turned"
    ),
    "qdrant-scalar": Engine("8 bits a column, one scale for all", lambda d: "int8-all"),
    "qdrant-binary": Engine("signs, by Hamming distance", lambda d: "sign"),
    "qdrant-turbo": Engine("TurboQuant", refused=_ITSELF),
    "lance-ivf-pq": Engine("product codes", _lance),
    "lance-rq": Engine("RaBitQ", refused=_ITSELF),
    "elasticsearch-bbq": Engine("better binary quantization (RaBitQ without its rotation)", lambda d: "rabitq"),
    "elasticsearch-precondition": Engine("better binary quantization, preconditioned", refused=_ITSELF),
    "lucene-int8": Engine("8 bits a column, one scale for all", lambda d: "int8-all"),
    "milvus-rabitq": Engine("RaBitQ", refused=_ITSELF),
    "zvec-int8": Engine("8 bits a column, from a row's least to its largest entry", lambda d: "int8-row"),
    "zvec-int4": Engine("4 bits a column, from a row's least to its largest entry", lambda d: "int4-row"),
    "weaviate-rq": Engine("rotational quantization", refused=_ITSELF),
}


def codec_for(engine: str, d: int) -> "str | faiss.Index":
    """The codec of `nk.Rotation` for an engine and rows of d columns.

    ValueError for an unknown engine, and for one in which a rotation gains nothing, with the reason.
    """
    if engine.startswith(FACTORY):
        try:
            return faiss.index_factory(d, engine.removeprefix(FACTORY))
        except RuntimeError as error:
            reason = str(error).rpartition(":")[2].strip()
            raise ValueError(f"--for {engine} is no index that FAISS makes for {d} columns ({reason})") from error
    found = ENGINES[check_choice(engine, "--for", [*ENGINES, f"{FACTORY}FACTORY"])]
    if found.codec is None:
        raise ValueError(f"a rotation gains nothing for {engine}: {found.refused}; give it the vectors as they are")
    return found.codec(d)
