"""turbovec (TurboQuant) by its own Python: the folder of data.npz and the bits a column are the arguments."""

import json
import sys
import time

import numpy as np
from turbovec import TurboQuantIndex

folder, bits = sys.argv[1], int(sys.argv[2])
with np.load(f"{folder}/data.npz") as data:
    learned, searched, queries = (
        np.ascontiguousarray(data[name], np.float32) for name in ("learned", "searched", "queries")
    )
index = TurboQuantIndex(dim=searched.shape[1], bit_width=bits)
start = time.process_time()
index.calibrate(np.ascontiguousarray(learned[:: max(1, len(learned) // 4096)]))
fit = time.process_time() - start
index.add(searched)
index.prepare()
start = time.process_time()
found = index.search(queries, 10)[1]
np.save(f"{folder}/found.npy", found)
seconds = time.process_time() - start
n_bytes, whole = searched.shape[1] * bits // 8 + 4, len(index.to_bytes()) / len(searched)
print(json.dumps({"fit": fit, "search": seconds, "bytes": n_bytes, "with_codebooks": whole}))
