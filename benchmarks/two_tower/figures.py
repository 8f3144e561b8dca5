"""Quality against time, and cost against size, from the JSON."""

import matplotlib

from benchmarks.options import FIGURES

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def draw(results: dict) -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name in ("ml100k", "gowalla"):
        if name not in results:
            continue
        fig, axis = plt.subplots(figsize=(7, 4.2))
        for label, row in results[name].items():
            if row["seconds"] > 0:
                axis.plot(row["seconds"], row["ndcg@100"], "s" if "implicit" in label else "o")
                axis.annotate(label, (row["seconds"], row["ndcg@100"]), (4, 3), textcoords="offset points", fontsize=8)
        axis.set(xscale="log", xlabel="CPU seconds of one thread", ylabel="test NDCG@100", title=f"{name}, k = 64")
        fig.tight_layout()
        fig.savefig(FIGURES / f"two_tower_{name}.svg")
    if "scaling" in results:
        fig, axis = plt.subplots(figsize=(5.5, 4))
        rows = [r for r in results["scaling"] if "m" in r]
        for key in ("brute force", "gradient", "product", "floor"):
            known = [r for r in rows if key in r]
            axis.loglog([r["m"] for r in known], [r[key] for r in known], "o-", label=key)
        axis.set(xlabel="m = n", ylabel="CPU milliseconds", title="k = 64, 100 pairs a row, one thread")
        axis.legend()
        fig.tight_layout()
        fig.savefig(FIGURES / "two_tower_scaling.svg")
