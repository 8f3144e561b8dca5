"""Run by the peer's own Python (cblearn pins NumPy 1.26): fit one loss and keep the time of every iteration.

    python peer_cblearn.py folder loss limit_seconds

folder/data.npz holds train (m, 3), test (t, 3), n, p. L-BFGS calls back after each iteration; the points are kept and
judged after the fit, so that judging costs no measured time.
"""

import json
import sys
import time

import cblearn
import cblearn.embedding._gnmds as gnmds
import cblearn.embedding._soe as soe
import cblearn.embedding._ste as ste
import numpy as np

train, test, n, p = (np.load(f"{sys.argv[1]}/data.npz")[name] for name in ("train", "test", "n", "p"))
loss, limit = sys.argv[2], float(sys.argv[3])
n, p = int(n), int(p)
seen = []


def watched(minimize):
    def run(function, start, **options):
        def keep(x):
            seen.append((time.process_time() - began, x.copy()))
            if seen[-1][0] > limit:
                raise StopIteration

        return minimize(function, start, callback=keep, **options)

    return run


for module in (gnmds, soe, ste):
    module.minimize = watched(module.minimize)
model = {
    "gnmds": lambda: gnmds.GNMDS(p, random_state=7),
    "soe": lambda: soe.SOE(p, random_state=7, n_init=1),
    "ste": lambda: ste.STE(p, random_state=7),
    "t-ste": lambda: ste.STE(p, random_state=7, heavy_tailed=True),
}[loss]()


def error(x):
    X = x.reshape(n, p)
    near, far = (((X[test[:, 0]] - X[test[:, c]]) ** 2).sum(1) for c in (1, 2))
    return float(np.mean(~(near < far)))


began = time.process_time()
model.fit(train.astype(np.int64), n_objects=n)
total = time.process_time() - began
reached = next((k for k, (_, x) in enumerate(seen) if error(x) <= 0.15), None)
about = {"seconds_to_target": None if reached is None else seen[reached][0], "iterations": len(seen)}
print(json.dumps(about | {"version": cblearn.__version__, "seconds": total, "error": error(seen[-1][1])}))
