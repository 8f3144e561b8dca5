"""ScaNN's codes alone, run by the peers' own Python: `python peer_scann.py FOLDER COLUMNS`, COLUMNS of a 4-bit code.

FOLDER/data.npz holds searched and queries. Writes FOLDER/found.npy, and prints one line of JSON. The loss is the plain
one, not the anisotropic one, which is for inner products.
"""

import json
import sys
import time

import numpy as np
import scann

folder, columns = sys.argv[1], int(sys.argv[2])
data = np.load(f"{folder}/data.npz")
X, Q = data["searched"], data["queries"]
start = time.process_time()
builder = scann.scann_ops_pybind.builder(X, 10, "squared_l2").set_n_training_threads(1)
builder = builder.score_ah(columns, anisotropic_quantization_threshold=float("nan"), training_sample_size=len(X))
searcher = builder.build()
seconds = time.process_time() - start
searcher.search_batched(Q[:10], final_num_neighbors=10)
start = time.process_time()
found, _ = searcher.search_batched(Q, final_num_neighbors=10)
searching = time.process_time() - start
np.save(f"{folder}/found.npy", found)
codes = -(-X.shape[1] // columns)
size = -(-codes // 2)
print(json.dumps({"train_seconds": seconds, "search_microseconds": 1e6 * searching / len(Q), "bytes": size}))
