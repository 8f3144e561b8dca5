"""Cost of one rotation update, and what one update a batch reaches on a stream.

    python -m benchmarks quantization rotation --quick
    python -m benchmarks quantization rotation --threads 2

First table: an update of R (n x n) from a given gradient. GCD's three steps are timed apart: the directional
derivatives (one product), the selection, the application; beside them one Cayley update (a gradient in the skew
parameters needs two solves), one SVD, and the one matrix product that is the floor of everything but GCD-R.
Second table: `partial_fit` on batches of 512 with one greedy block, four, or an SVD a batch.
"""

import numpy as np

from benchmarks.harness import limit_threads, load, median_ms, save
from benchmarks.options import parser
from nearkin import ProductQuantizer
from nearkin.linalg import rotate_rows
from nearkin.orthogonal import greedy_matching, random_matching


def directional_derivatives(G: np.ndarray, R: np.ndarray) -> np.ndarray:
    """A = G^T R - R^T G, skew: A[i, j] = d/dtheta L(R R_ij(theta)) at 0 for the gradient G of L at R (GCD, Prop. 1)."""
    P = G.T @ R
    return P - P.T


def cayley_step(R: np.ndarray, G: np.ndarray) -> np.ndarray:
    """One gradient step on A at A = 0 and the rotation it gives: R (I - A)(I + A)^-1."""
    A = 1e-3 * directional_derivatives(G, R)
    eye = np.eye(len(R), dtype=R.dtype)
    return R @ np.linalg.solve((eye + A).T, (eye - A).T).T


def update_costs(n: int, repeats: int) -> dict[str, float]:
    rng = np.random.default_rng(n)
    R = np.linalg.qr(rng.normal(size=(n, n)))[0].astype(np.float32)
    G = rng.normal(size=(n, n)).astype(np.float32)
    A = directional_derivatives(G, R)
    W = np.abs(A)
    pairs = greedy_matching(W)
    theta = 1e-3 * A[pairs[:, 0], pairs[:, 1]]
    shuffled = random_matching(n, rng)
    cost = median_ms(
        {
            "one product": lambda: G.T @ R,
            "derivatives": lambda: directional_derivatives(G, R),
            "select random": lambda: random_matching(n, rng),
            "select greedy": lambda: greedy_matching(W, check_input=False),
            "angles of given pairs": lambda: np.einsum(
                "pk,pk->p", G.T[shuffled[:, 0]], R.T[shuffled[:, 1]]
            ),  # all that GCD-R needs of A
            "apply": lambda: rotate_rows(R, pairs, theta),
            "Cayley": lambda: cayley_step(R, G),
            "SVD": lambda: np.linalg.svd(G),
        },
        repeats,
    )
    cost["GCD-R"] = cost["select random"] + cost["apply"]
    cost["GCD-G"] = cost["derivatives"] + cost["select greedy"] + cost["apply"]
    return cost


def streaming(n: int, batches: int, seed: int, repeats: int = 30) -> dict[str, dict[str, float]]:
    """Held-out distortion after a stream of `batches` of 512, and the milliseconds of one `partial_fit`."""
    train, held_out, _ = load("gaussian", None)  # type: ignore[arg-type]
    rng = np.random.default_rng(seed)
    if n != train.shape[1]:
        mix = rng.normal(size=(n, n)) * np.arange(1, n + 1)[:, None] ** -0.5
        train, held_out = ((rng.normal(size=(rows, n)) @ mix).astype(np.float32) for rows in (30_000, 5_000))
    ways = {
        "no rotation": (None, 1),
        "1 greedy block": ("givens-greedy", 1),
        "4 greedy blocks": ("givens-greedy", 4),
        "SVD": ("procrustes", 1),
    }
    fitted = {}
    for name, (rotation, blocks) in ways.items():
        pq = ProductQuantizer(8, 256, rotation, "identity", n_blocks=blocks, max_iter=1, random_state=seed)
        pq.partial_fit(train[:2048])
        order = np.random.default_rng(seed)
        for _ in range(batches):
            pq.partial_fit(train[order.choice(len(train), 512, replace=False)])
        fitted[name] = pq
    distortion = {name: pq.distortion(held_out[:5000]) for name, pq in fitted.items()}
    batch = train[:512]
    ms = median_ms({name: lambda pq=pq: pq.partial_fit(batch) for name, pq in fitted.items()}, repeats)
    return {name: {"distortion": distortion[name], "ms per batch": ms[name]} for name in ways}


def main() -> None:
    options = parser(__doc__).parse_args()
    limit_threads(options.threads)
    sizes = (64, 128, 256, 512) if options.quick else (64, 128, 256, 512, 1024)
    repeats = 7 if options.quick else 15
    costs = {n: update_costs(n, repeats) for n in sizes}
    columns = ("one product", "GCD-R", "GCD-G", "Cayley", "SVD", "select greedy", "apply")
    print(f"CPU milliseconds of one update, {options.threads} thread(s), medians of {repeats} in turn")
    print("    n " + " ".join(f"{c:>13}" for c in columns) + "   Cayley/GCD-R  Cayley/GCD-G  GCD-G/product")
    for n, c in costs.items():
        ratios = c["Cayley"] / c["GCD-R"], c["Cayley"] / c["GCD-G"], c["GCD-G"] / c["one product"]
        print(
            f"{n:5d} "
            + " ".join(f"{c[name]:13.3f}" for name in columns)
            + "   {:12.0f}  {:12.1f}  {:13.2f}".format(*ratios)
        )
    streams = {}
    for n, batches in ((128, 300),) if options.quick else ((128, 600), (256, 600), (512, 300)):
        streams[n] = streaming(n, batches, seed=0)
        print(f"\nStream of {batches} batches of 512 rows, n = {n}, 8 bytes, from the identity after one round")
        svd = streams[n]["SVD"]
        bare = streams[n]["no rotation"]["ms per batch"]
        for name, row in streams[n].items():
            rotation = row["ms per batch"] - bare
            share = rotation / max(svd["ms per batch"] - bare, 1e-9)
            relative = row["distortion"] / svd["distortion"]
            print(
                f"  {name:16s} distortion {row['distortion']:.4g} ({relative:.4f} of SVD's)"
                f"  {row['ms per batch']:.2f} ms a batch, rotation's part {share:.3f} of SVD's"
            )
    path = save("rotation", {"update_ms": costs, "streaming": streams}, threads=options.threads, quick=options.quick)
    print(f"\n{path}")
