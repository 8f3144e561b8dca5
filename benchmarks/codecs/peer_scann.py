"""ScaNN, run by the peers' own Python: `peer_scann.py FOLDER COLUMNS [LEAVES LEARNED CANDIDATES THREADS PROBES...]`.

FOLDER/data.npz holds searched and queries. Codes have 4 bits for COLUMNS columns; without LEAVES they are compared one
by one, else in a tree, of which PROBES leaves are visited, and CANDIDATES re-ranked by the rows themselves, none where
0. Writes FOLDER/found.npy, or FOLDER/<probes>.npy, and prints one line of JSON. The loss is the plain one, not the
anisotropic one, which is for inner products.
"""

import json
import sys
import time

import numpy as np
import scann

folder, columns, *tree = sys.argv[1], *map(int, sys.argv[2:])
data = np.load(f"{folder}/data.npz")
X, Q = data["searched"], data["queries"]
leaves, learned, candidates, threads, *probes = tree or (0, len(X), 0, 1)
start = time.process_time()
builder = scann.scann_ops_pybind.builder(X, 10, "squared_l2").set_n_training_threads(1)
if leaves:
    builder = builder.tree(num_leaves=leaves, num_leaves_to_search=8, training_sample_size=learned)
builder = builder.score_ah(columns, anisotropic_quantization_threshold=float("nan"), training_sample_size=learned)
searcher = (builder.reorder(candidates) if candidates else builder).build()
codes = -(-X.shape[1] // columns)
row = {"train_seconds": time.process_time() - start, "bytes": (codes + 1) // 2}
clock, call = time.process_time, searcher.search_batched
if threads > 1:
    clock, call = time.perf_counter, searcher.search_batched_parallel
call(Q[:10], final_num_neighbors=10)
points = []
for count in probes or [None]:
    search = {"final_num_neighbors": 10} | ({"leaves_to_search": count} if leaves else {})
    if candidates:
        search["pre_reorder_num_neighbors"] = candidates
    seconds = []
    for _ in range(3):
        start = clock()
        found = call(Q, **search)[0]
        seconds.append(clock() - start)
    np.save(f"{folder}/{count or 'found'}.npy", found)
    points.append({"probes": count, "per_second": len(Q) / min(seconds)})
row |= {"points": points} if leaves else {"search_microseconds": 1e6 / points[0]["per_second"]}
print(json.dumps(row))
