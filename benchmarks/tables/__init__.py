"""Tables of what was measured, from the JSON: one function an area, for the report, README and docs alike."""

from collections.abc import Callable, Iterable

from benchmarks.tables.base import Results, Table
from benchmarks.tables.embedding import ordinal, two_tower
from benchmarks.tables.end_to_end import end_to_end
from benchmarks.tables.hashing import hashing
from benchmarks.tables.orthogonal import orthogonal
from benchmarks.tables.quantization import quantization
from benchmarks.tables.scale import scale

AREAS: dict[str, Callable[[Results], Iterable[Table]]] = {
    "Rotations and product quantization": quantization,
    "Orthogonal matrices": orthogonal,
    "Hashing": hashing,
    "Ordinal embedding": ordinal,
    "Two towers": two_tower,
    "End to end": end_to_end,
    "Beyond one machine": scale,
}
