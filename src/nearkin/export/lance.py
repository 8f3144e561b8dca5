"""Lance: the index as an IVF-PQ of our rotation, centroids and codebooks, in a folder that object storage can hold.

Lance has no rotation: its table holds rotated vectors and needs rotated queries, `Q @ rotation_`;
`LanceTable(...).search` rotates them. Distances do not change under a rotation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from nearkin._check import check_vectors
from nearkin._fields import Extra, StrPath
from nearkin._storage import check_target, read_config, saving_folder
from nearkin._types import ArrayLike, Record
from nearkin.data.files import extra
from nearkin.export.source import Source
from nearkin.export.target import Callback, Target, Written, padded_ids
from nearkin.index.searching import normalised
from nearkin.quantization.product import ProductQuantizer

KIND = "lance export"
METRICS = {"l2": "L2", "ip": "dot", "cosine": "dot"}  # of normalised rows, for "cosine"
_TABLE = "vectors.lance"


class Lance(Target):
    """A folder: `vectors.lance` with the columns id and vector (rotated) under an IVF_PQ index, and our quantizer.

    Vectors are the exact vectors if the index keeps them, else the decoded codes. Plain product quantization becomes
    one partition around the origin.

    Parameters
    ----------
    out: the folder.
    overwrite: whether to replace a folder that nearkin wrote.

    Attributes
    ----------
    out, overwrite: as given.

    Examples
    --------
    >>> nk.export.lance.Lance("idx.lance").overwrite  # doctest: +SKIP
    False
    """

    recall_target: ClassVar[float] = 0.95  # rows that lie between two coarse cells may fall into the other one

    def __init__(self, out: StrPath, overwrite: bool = False) -> None:
        self.out: Path = check_target(out, overwrite)
        self.overwrite: bool = overwrite

    @contextmanager
    def writing(self, source: Source, callback: Callback) -> Iterator[Written]:
        lance, index = extra("lance", "lance"), source.index
        quantizer = _product(source)
        parts, exact = _parts(quantizer, index.metric), index.kept is not None
        config = {"metric": index.metric, "n_features": source.d, "n_rows": len(source), "n_probe": index.n_probe or 1}
        with saving_folder(self.out, KIND, config, self.overwrite) as folder:
            quantizer.save(folder / "quantizer")
            table = folder / _TABLE
            dataset = lance.write_dataset(_reader(source, quantizer.rotation_, callback), str(table))
            dataset.create_index("vector", "IVF_PQ", metric=METRICS[index.metric], **parts)
            opened = LanceTable(folder)
            facts = {"out": str(self.out), "partitions": parts["num_partitions"], "exact_vectors": exact}
            yield Written(lambda asked, k: opened.search(asked, k)[1], facts)


class LanceTable:
    """An exported folder, opened for search.

    Parameters
    ----------
    folder: what `Lance` wrote.

    Attributes
    ----------
    dataset: the `lance.LanceDataset` itself.
    rotation: (d, d); queries are multiplied by it.
    metric, n_features: of the index that was exported.

    Examples
    --------
    >>> table = nk.export.lance.LanceTable("idx.lance")  # doctest: +SKIP
    >>> distances, ids = table.search(X[:2], k=3)  # doctest: +SKIP
    """

    def __init__(self, folder: StrPath) -> None:
        config = read_config(folder, KIND)
        quantizer = ProductQuantizer.load(Path(folder) / "quantizer")
        self.metric: str = config["metric"]
        self.n_features: int = config["n_features"]
        self.n_rows: int = config["n_rows"]
        self.n_probe: int = config["n_probe"]
        self.rotation: np.ndarray = quantizer.rotation_
        self.dataset: Extra = extra("lance", "lance").dataset(str(Path(folder) / _TABLE))

    def search(self, Q: ArrayLike, k: int = 10, *, oversample: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Scores and ids (q, k) of queries Q (q, d) in the original space, nearest first, as `Index.search` gives them.

        `oversample` takes that many times k candidates by their codes and ranks them by the stored vectors.
        """
        Q = check_vectors(Q, name="Q", n_features=self.n_features)
        Q = normalised(Q) if self.metric == "cosine" else Q
        asked = (Q.astype(np.float64) @ self.rotation).astype(np.float32)
        nearest = {"column": "vector", "k": min(k, self.n_rows), "nprobes": self.n_probe, "refine_factor": oversample}
        columns = ["id", "_distance"]
        tables = [self.dataset.to_table(columns=columns, nearest={**nearest, "q": row}) for row in asked]
        found = [table["_distance"].to_pylist() for table in tables]  # an inverted file may visit fewer than k rows
        far = np.array([one + [np.inf] * (nearest["k"] - len(one)) for one in found], np.float32)
        ids = padded_ids([table["id"].to_pylist() for table in tables], nearest["k"])
        return far if self.metric == "l2" else 1 - far, ids  # Lance's "dot" distance is 1 - <q, x>


def _product(source: Source) -> ProductQuantizer:
    """The product codes of the index; ValueError for other codes, and for norms, which Lance would not read."""
    quantizer = source.index.quantizer
    norms = source.index.norms
    if not isinstance(quantizer, ProductQuantizer) or (norms is not None and norms.n_bytes):
        raise ValueError(
            "lance takes product codes without norms; compress with the method product, or export bits to pgvector"
        )
    return quantizer


def _parts(quantizer: ProductQuantizer, metric: str) -> Record:
    """Arguments of `create_index`; ValueError for an index that Lance cannot hold as IVF-PQ."""
    coarse, books = quantizer.coarse_centroids_, quantizer.codebooks_
    bits = 4 if books.shape[1] <= 16 else 8
    if books.shape[1] > 256:
        raise ValueError(f"lance takes up to 256 centroids; this quantizer has {books.shape[1]}")
    if coarse is not None and metric != "l2":
        raise ValueError(f"lance quantizes no residuals for {metric!r}; compress with the metric l2, or without lists")
    spare = np.repeat(books[:, :1], (1 << bits) - books.shape[1], axis=1)  # no code uses them
    d = quantizer.n_features_in_
    centroids = np.zeros((1, d), np.float32) if coarse is None else coarse @ quantizer.rotation_
    return {
        "num_partitions": len(centroids),
        "num_sub_vectors": len(books),
        "num_bits": bits,
        "ivf_centroids": np.ascontiguousarray(centroids, np.float32),
        "pq_codebook": np.ascontiguousarray(np.concatenate([books, spare], axis=1), np.float32),
    }


def _reader(source: Source, rotation: np.ndarray, callback: Callback) -> Extra:
    """The rows as Arrow batches, rotated; the codes of an inverted file know neither more nor less for it."""
    kind = pa.string() if source.has_text_ids else pa.int64()
    schema = pa.schema([("id", kind), ("vector", pa.list_(pa.float32(), source.d))])
    rotation = rotation.astype(np.float64)

    def batches() -> Iterator[Extra]:
        for batch in source.batches(callback=callback):
            rows = (batch.vectors.astype(np.float64) @ rotation).astype(np.float32)  # type: ignore[union-attr]
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), source.d)
            yield pa.record_batch([pa.array(batch.ids, kind), vectors], schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
