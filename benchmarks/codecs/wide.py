"""Wide rows: seconds and peak memory of learning, coding and searching 100,000 rows of 1,536 and 3,072 columns.

    python -m benchmarks codecs wide
    python -m benchmarks codecs wide --quick

Made rows of length 1, in a float16 file: 512 directions of falling variance and a tenth of noise over all columns. Each
code is measured by a process of its own, which reads the file a chunk at a time, learns from 65,536 rows, codes all and
answers 1,000 queries by inner products. A code that takes longer than LIMIT seconds by the clock is stopped. Behind our
product codes, four candidates an answer are ranked again by vectors kept in each type; the records have the bytes of
both. Seconds are CPU seconds of one thread, that of the fit with reading.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import nearkin as nk
from benchmarks.harness import cpu_seconds, limit_threads, save
from benchmarks.options import parser
from nearkin.index.kept_vectors import KEPT_TYPES, KeptVectors
from nearkin.metrics import recall_k_at_k

COLUMNS, ROWS, QUERIES, LEARNED, NEIGHBOURS, LIMIT = (1_536, 3_072), 100_000, 1_000, 65_536, 10, 300
DIRECTIONS, NOISE, OVERSAMPLE = 512, 0.1, 4
Record = dict[str, Any]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--one", nargs=2, metavar=("FOLDER", "CODE"), help="measure one code of the rows in a folder")
    options.add_argument("--columns", type=int, action="append", help="widths; may be given again")
    options.add_argument("--only", action="append", help="codes whose names begin so; may be given again")
    given = options.parse_args()
    limit_threads(given.threads)
    if given.one:
        print(json.dumps(measured(Path(given.one[0]), given.one[1])))
        return
    records = []
    for d in given.columns or (COLUMNS[:1] if given.quick else COLUMNS):
        with tempfile.TemporaryDirectory() as folder:
            make(Path(folder), d, ROWS // 25 if given.quick else ROWS)
            for name in codes(d):
                if given.only is None or name.startswith(tuple(given.only)):
                    records.append({"columns": d, "code": name, **apart(folder, name, given.threads)})
                    print(records[-1], flush=True)
    if not given.quick and not given.only:
        save("codecs_wide", records, rows=ROWS, learned=LEARNED, queries=QUERIES, limit=LIMIT, threads=given.threads)


def make(folder: Path, d: int, n: int) -> None:
    """Rows and queries in files, and the true neighbours of the queries."""
    rng = np.random.default_rng(0)
    scale = np.arange(1, DIRECTIONS + 1) ** -0.5
    directions = (scale / np.linalg.norm(scale))[:, None] * rng.normal(size=(DIRECTIONS, d)) / np.sqrt(d)
    directions = directions.astype(np.float32)
    rows = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float16, (n, d))
    for first in (-1, *range(0, n, 10_000)):  # the queries, then the rows
        count = QUERIES if first < 0 else min(10_000, n - first)
        latent = rng.standard_normal((count, DIRECTIONS), np.float32)
        X = latent @ directions + np.sqrt(NOISE / d, dtype=np.float32) * rng.standard_normal((count, d), np.float32)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        if first < 0:
            np.save(folder / "queries.npy", X)
        else:
            rows[first : first + count] = X
    rows.flush()
    exact = nk.Index.build(np.asarray(rows, np.float32), metric="ip")
    np.save(folder / "true.npy", exact.search(np.load(folder / "queries.npy"), NEIGHBOURS)[1])


def codes(d: int) -> list[str]:
    """Ours at a byte for 32 columns and for 8, and FAISS's at about the same bytes."""
    few = d // 32
    return [
        f"nearkin product {few}", f"nearkin axes {d // 8}", f"FAISS PQ{few}", f"FAISS OPQ{few},PQ{few}",
        "FAISS RR,RaBitQ", "FAISS RR,EDEN1",
    ]  # fmt: skip


def apart(folder: str, name: str, threads: int) -> Record:
    command = [sys.executable, "-m", "benchmarks", "codecs", "wide", "--threads", str(threads), "--one", folder, name]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"note": f"stopped after {LIMIT} s"}
    return json.loads(done.stdout.splitlines()[-1])


def measured(folder: Path, name: str) -> Record:
    """CPU seconds, that of the fit with reading; peak memory in MB, after the fit and of all; recall 10@10."""
    file, Q = nk.data.open_vectors(folder / "rows.npy"), np.load(folder / "queries.npy")
    true = np.load(folder / "true.npy")
    who, kind, *size = name.split()
    if who == "FAISS":
        index: Any = faiss.index_factory(file.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
        fit, _ = cpu_seconds(lambda: index.train(file.sample(LEARNED, 0)))
        n_bytes = index.sa_code_size()
    else:
        maker = nk.ProductQuantizer if kind == "product" else nk.quantization.AxisQuantizer  # rows of norm 1
        fit, model = cpu_seconds(lambda: maker(int(size[0])).fit(file.sample(LEARNED, 0)))
        index = nk.Index.empty(file.shape[1], model, "cosine")
        n_bytes = index.bytes_per_vector
    learned = peak()
    adding, _ = cpu_seconds(lambda: [index.add(chunk) for chunk in file.chunks()])
    searching, (_, found) = cpu_seconds(lambda: index.search(Q, NEIGHBOURS))
    record = {
        "bytes": n_bytes, "fit": fit, "encode": adding, "search": searching, "fit_megabytes": learned,
        "megabytes": peak(), "recall": recall_k_at_k(found, true, NEIGHBOURS),
    }  # fmt: skip
    for kept in KEPT_TYPES if kind == "product" else ():
        rows = KeptVectors.wanted(kept, file.shape[1])
        assert rows is not None
        for chunk in file.chunks():
            rows = rows.with_rows(chunk)
        index.kept = rows
        seconds, (_, found) = cpu_seconds(lambda: index.search(Q, NEIGHBOURS, oversample=OVERSAMPLE))
        recall = recall_k_at_k(found, true, NEIGHBOURS)
        record[kept] = {"bytes": n_bytes + rows.row_bytes, "search": seconds, "recall": recall}
    return record


def peak() -> int:
    """The most memory so far, in MB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
