"""ScaNN's tree, run by the peers' own Python: `peer_scann_tree.py FOLDER LEAVES LEARNED CANDIDATES THREADS PROBES...`.

FOLDER/data.npz holds searched and queries. Writes FOLDER/<probes>.npy, and prints one line of JSON. Codes have 4 bits
for 4 columns; CANDIDATES are re-ranked by the rows themselves, none where 0.
"""

import json
import sys
import time

import numpy as np
import scann

folder, leaves, learned, candidates, threads, *probes = sys.argv[1], *map(int, sys.argv[2:])
data = np.load(f"{folder}/data.npz")
X, Q = data["searched"], data["queries"]
start = time.process_time()
builder = scann.scann_ops_pybind.builder(X, 10, "squared_l2").set_n_training_threads(1)
builder = builder.tree(num_leaves=leaves, num_leaves_to_search=8, training_sample_size=learned)
builder = builder.score_ah(4, anisotropic_quantization_threshold=float("nan"), training_sample_size=learned)
searcher = (builder.reorder(candidates) if candidates else builder).build()
made = time.process_time() - start
points = []
for count in probes:
    search = {"final_num_neighbors": 10, "leaves_to_search": count}
    if candidates:
        search["pre_reorder_num_neighbors"] = candidates
    seconds = []
    clock, call = time.process_time, searcher.search_batched
    if threads > 1:
        clock, call = time.perf_counter, searcher.search_batched_parallel
    for _ in range(3):
        start = clock()
        found = call(Q, **search)[0]
        seconds.append(clock() - start)
    np.save(f"{folder}/{count}.npy", found)
    points.append({"probes": count, "per_second": len(Q) / min(seconds)})
print(json.dumps({"bytes": X.shape[1] // 8, "train_seconds": made, "points": points}))
