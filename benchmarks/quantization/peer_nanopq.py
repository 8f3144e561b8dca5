"""nanopq's OPQ, run by the peers' own Python: `python peer_nanopq.py DATA.npz M K`, DATA with X and test.

Prints one line of JSON: CPU seconds of the whole fit with nanopq's defaults, and the distortion of the test rows.
"""

import json
import sys
import time

import nanopq
import numpy as np

data, M, K = np.load(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
np.random.seed(0)  # noqa: NPY002 - nanopq draws from the global generator
start = time.process_time()
opq = nanopq.OPQ(M=M, Ks=K, verbose=False).fit(data["X"])
seconds = time.process_time() - start
test = data["test"]
decoded = opq.decode(opq.encode(test))
distortion = float(((test - decoded) ** 2).sum(1).mean())
print(json.dumps({"seconds": seconds, "distortion": distortion, "version": nanopq.__version__}))
