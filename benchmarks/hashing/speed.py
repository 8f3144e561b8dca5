"""Learning and encoding against the two products, X V and X^T B, that they cannot do without."""

import time
from collections.abc import Callable
from typing import Any

import faiss
import numpy as np

import nearkin as nk
from nearkin.hashing import pack_signs
from nearkin.hashing.spectrum import principal_axes
from nearkin.linalg.signs import row_blocks

BITS = 32


def measure_speed(X: np.ndarray, *, quick: bool) -> dict[str, Any]:
    """Seconds and ratios; rivals are timed in turns, A B A B, and the fastest counts (whole fits run once)."""
    rounds = 2 if quick else 3
    results: dict[str, Any] = {"rows": len(X), "columns": X.shape[1], "bits": BITS}
    spectrum = principal_axes(lambda: row_blocks(X), 512)
    Z = (X - spectrum.mean.astype(np.float32)) @ spectrum.axes.astype(np.float32)
    results |= {f"iteration: {name}": value for name, value in iterations(Z, rounds).items()}
    seconds = alternate_timing(
        {
            "PCA to 512": lambda: principal_axes(lambda: row_blocks(X), 512),
            "ITQ": lambda: nk.ITQ(BITS, random_state=0).fit(X),
            "FAISS ITQ": lambda: faiss_itq(X),
            "OgE": lambda: nk.OgE(BITS, random_state=0).fit(X),
            "OnE": lambda: nk.OnE(BITS, random_state=0).fit(X),
            "OgE, 128 components": lambda: nk.OgE(BITS, n_components=128, random_state=0).fit(X),
            "OgE, 10,000 rows": lambda: nk.OgE(BITS, random_state=0).fit(X[:10_000]),
        },
        1,
    )
    results |= {f"fit: {name}": value for name, value in seconds.items()}
    results |= {f"encode: {name}": value for name, value in encoding(X, rounds).items()}
    results["iteration: OgE over floor"] = results["iteration: OgE"] / results["iteration: floor"]
    results["iteration: OnE over floor"] = results["iteration: OnE"] / results["iteration: floor"]
    for name, value in results.items():
        print(f"{name:32s} {value:.4g}")
    return results


def encoding(X: np.ndarray, rounds: int) -> dict[str, float]:
    """Seconds of all codes of X, beside the product and the packing alone and FAISS's ITQ with its bits."""
    hasher = nk.ITQ(BITS, max_iter=2, random_state=0).fit(X[:10_000])
    values, centred = hasher.project(X), X - hasher.mean_
    theirs, bits = faiss_itq(X[:10_000]), faiss.IndexLSH(BITS, BITS, False)
    seconds = alternate_timing(
        {
            "encode": lambda: hasher.encode(X),
            "FAISS ITQ": lambda: bits.sa_encode(theirs.apply(X)),
            "product alone": lambda: centred @ hasher.projection_,
            "packing alone": lambda: pack_signs(values),
        },
        3 * rounds,
    )
    return {
        **seconds,
        "over product": seconds["encode"] / seconds["product alone"],
        "speed beside FAISS's": seconds["FAISS ITQ"] / seconds["encode"],
    }


def iterations(Z: np.ndarray, rounds: int) -> dict[str, float]:
    """Seconds of one iteration: the floor is X V and X^T B as two plain products."""
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((Z.shape[1], BITS)))[0].astype(np.float32)

    def floor() -> np.ndarray:
        return Z.T @ (Z @ V)

    def learn(make: Callable[..., Any]) -> Callable[[], float]:
        return lambda: seconds_per_iteration(make, Z)

    plain = [time_of(floor) for _ in range(rounds)]
    makers = {"OgE": nk.OgE, "OnE": nk.OnE, "OnE, stiefel": lambda n, **kw: nk.OnE(n, solver="stiefel", **kw)}
    found: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(rounds):
        for name, make in makers.items():
            found[name].append(learn(make)())
        plain.append(time_of(floor))
    return {"floor": min(plain), **{name: min(values) for name, values in found.items()}}


def seconds_per_iteration(make: Callable[..., Any], Z: np.ndarray) -> float:
    """From the times at which a fit's callback is called, so without PCA: the median of the gaps."""
    times: list[float] = []
    make(BITS, tol=0.0, max_iter=8, random_state=0).fit(
        Z, callback=lambda step, record: times.append(time.process_time())
    )
    return float(np.median(np.diff(times)))


def faiss_itq(X: np.ndarray) -> faiss.ITQTransform:
    """FAISS's own training: PCA, then ITQ on a sample that it chooses."""
    transform = faiss.ITQTransform(X.shape[1], BITS, True)
    transform.train(X)
    return transform


def alternate_timing(jobs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The fastest of `rounds` for each job, in turns."""
    seconds = dict.fromkeys(jobs, np.inf)
    for _ in range(rounds):
        for name, job in jobs.items():
            seconds[name] = min(seconds[name], time_of(job))
    return seconds


def time_of(job: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.process_time()
    job()
    return time.process_time() - start
