"""A function from batches of vectors to batches of codes, for process pools, Ray Data and Spark."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from nearkin._check import check_magnitude, check_vectors
from nearkin._fields import StrPath
from nearkin._guard import cached_property
from nearkin._storage import read_config
from nearkin._types import ArrayLike
from nearkin.contracts import Quantizer
from nearkin.data.tables import Column, plain_cells
from nearkin.data.vectors import stacked
from nearkin.index.parts import KINDS as QUANTIZERS
from nearkin.index.parts import read_norms, read_quantizer
from nearkin.index.searching import normalised
from nearkin.linalg.norms import Norms


class BatchEncoder:
    """Codes of a batch of vectors, for Ray Data, Spark and other engines that map batches.

    A call takes a batch of columns and returns them with the column of vectors replaced by codes (n, bytes) uint8
    (uint16 for more than 256 centroids); if the index has norms, the number of the vector's norm comes last. The model
    is read with the first batch. A pickled encoder holds only the name of the folder, which other processes and
    machines must see. Vectors of an index by cosine are normalised first.

    ray.data:  dataset.map_batches(BatchEncoder("idx"), batch_size=8192)
    Spark:     frame.mapInArrow(BatchEncoder("idx").arrow_batches, schema="id long, codes binary")

    Parameters
    ----------
    model: the folder of a saved index or quantizer.
    vectors: the column of vectors.
    codes: the column of the result.

    Attributes
    ----------
    n_features, n_bytes, dtype: columns of a vector, bytes and type of a code.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    >>> nk.ProductQuantizer(4, n_centroids=16, random_state=0).fit(X).save("pq")
    >>> nk.export.BatchEncoder("pq")({"id": np.arange(2), "vector": X[:2]})["codes"].shape
    (2, 4)
    """

    def __init__(self, model: StrPath, vectors: str = "vector", codes: str = "codes") -> None:
        self.model: str = os.fspath(model)
        self.vectors = vectors
        self.codes = codes

    def __getstate__(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("model", "vectors", "codes")}

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Columns of one batch; ValueError if it has no column `vectors` or one of another width."""
        if self.vectors not in batch:
            raise ValueError(f"the batch has no column {self.vectors!r}; it has {', '.join(batch)}")
        column = np.asarray(batch[self.vectors])
        rows = np.stack(list(column)) if column.dtype == object else column
        rest = {name: values for name, values in batch.items() if name != self.vectors}
        return {**rest, self.codes: self.encode(rows)}

    def encode(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, width) of vectors X (n, d); a vector's code does not depend on its batch."""
        X = check_vectors(X, n_features=self.n_features, finite=False)  # the quantizer's `encode` refuses NaN
        codes = self._quantizer.encode(normalised(check_magnitude(X, metric="cosine")) if self._cosine else X)
        return codes if self._norms is None else np.column_stack([codes, self._norms.named(X)])

    def arrow_batches(self, batches: Iterable[pa.RecordBatch], vectors: str | None = None) -> Iterator[pa.RecordBatch]:
        """Yield each record batch with its list column `vectors` replaced by a binary column `codes`."""
        name = self.vectors if vectors is None else vectors
        for batch in batches:
            place = batch.schema.get_field_index(name)
            if place < 0:
                raise ValueError(f"the batch has no column {name!r}; it has {', '.join(batch.schema.names)}")
            codes = np.empty((0, self.n_bytes), np.uint8)
            if batch.num_rows:
                codes = self.encode(stacked([Column(name, plain_cells(batch.column(name)), "the batch")]))
            yield batch.set_column(place, self.codes, binary_column(codes))

    @cached_property
    def n_features(self) -> int:
        """Columns that vectors must have."""
        return int(self._quantizer.n_features_in_)

    @cached_property
    def n_bytes(self) -> int:
        """Bytes of a code."""
        return self._code.nbytes

    @cached_property
    def dtype(self) -> np.dtype:
        """Type of the codes."""
        return self._code.dtype

    @cached_property
    def _code(self) -> np.ndarray:
        return self.encode(np.ones((1, self.n_features), np.float32))

    @cached_property
    def _quantizer(self) -> Quantizer:
        folder = Path(self.model)
        if read_config(folder)["kind"] == "index":
            folder = folder / "quantizer"
            if not folder.is_dir():
                raise ValueError(f"{self.model} is an index of exact vectors; compress it with a method that has codes")
        if (kind := read_config(folder)["kind"]) not in QUANTIZERS:
            raise ValueError(f"{self.model} holds the kind {kind!r}; it must be an index or a quantizer")
        return read_quantizer(folder).open()

    @cached_property
    def _norms(self) -> Norms | None:
        return read_norms(self.model)

    @cached_property
    def _cosine(self) -> bool:
        return read_config(self.model).get("metric") == "cosine"


def binary_column(codes: np.ndarray) -> pa.FixedSizeBinaryArray:
    """Codes (n, width) as an Arrow array of fixed-size binaries, one per vector."""
    codes = np.ascontiguousarray(codes)
    width = codes.shape[1] * codes.itemsize
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(codes), [None, pa.py_buffer(codes)])
