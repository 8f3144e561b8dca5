"""Run by the peer's own Python (cblearn pins NumPy 1.26): fit one loss and keep the time of every iteration.

    python peer_cblearn.py folder loss limit_seconds

folder/data.npz holds train (m, 3), test (t, 3), n, p. L-BFGS calls back after each iteration; the points are kept and
judged after the fit, so that judging costs no measured time.
"""

import json
import sys
import time

import cblearn
import cblearn.embedding._ckl as ckl
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


for module in (ckl, gnmds, soe, ste):
    module.minimize = watched(module.minimize)
model = {
    "ckl": lambda: ckl.CKL(p, random_state=7),
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
stride = max(1, len(seen) // 200)
curve = [(seconds, error(x)) for seconds, x in seen[::stride]]
reached = next((k for k, (_, x) in enumerate(seen) if error(x) <= 0.15), None) if len(seen) <= 400 else None
if reached is None:
    coarse = next((k for k, (_, e) in enumerate(curve) if e <= 0.15), None)
    if coarse is not None:
        reached = next(k for k in range(max(0, (coarse - 1) * stride), len(seen)) if error(seen[k][1]) <= 0.15)
print(
    json.dumps(
        {
            "version": cblearn.__version__ if hasattr(cblearn, "__version__") else "0.4.0",
            "seconds_to_target": None if reached is None else seen[reached][0],
            "iterations": len(seen),
            "seconds": total,
            "error": error(seen[-1][1]),
        }
    )
)
