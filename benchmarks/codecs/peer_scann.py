"""ScaNN, run by the peers' own Python: `peer_scann.py FOLDER COLUMNS`.

FOLDER/data.npz holds searched and queries. Codes have 4 bits for COLUMNS columns and are compared one by one. Writes
FOLDER/found.npy and prints one line of JSON. The loss is the plain one, not the anisotropic one, which is for inner
products.
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
plain = {"anisotropic_quantization_threshold": float("nan"), "training_sample_size": len(X)}
searcher = builder.score_ah(columns, **plain).build()
codes = -(-X.shape[1] // columns)
row = {"train_seconds": time.process_time() - start, "bytes": (codes + 1) // 2}
searcher.search_batched(Q[:10], final_num_neighbors=10)
seconds = []
for _ in range(3):
    start = time.process_time()
    found = searcher.search_batched(Q, final_num_neighbors=10)[0]
    seconds.append(time.process_time() - start)
np.save(f"{folder}/found.npy", found)
print(json.dumps(row | {"search_microseconds": 1e6 * min(seconds) / len(Q)}))
