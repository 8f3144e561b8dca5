"""The paper's Figure 2 from the JSON."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from benchmarks.options import FIGURES

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def draw(results: dict[str, Any]) -> Path:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for name, stamps in results["lines"].items():
        left.plot(*zip(*stamps, strict=True), label=name)
    left.set(xlabel="CPU seconds", ylabel="distortion (training rows)", title="sift_bsds, 8 bytes, from the identity")
    best = min(stamps[-1][1] for stamps in results["lines"].values())
    left.set_ylim(0.99 * best, 1.2 * best)
    left.legend(fontsize=8)
    for name, runs in results["spread"].items():
        shortest = min(map(len, runs))  # a run ends when nothing falls any more
        curves = np.array([run[:shortest] for run in runs])
        relative = curves / curves[:, -1].mean()
        mean, deviation = relative.mean(0), relative.std(0)
        right.plot(mean, label=f"{name} of the rows")
        right.fill_between(range(len(mean)), mean - deviation, mean + deviation, alpha=0.2)
    right.set(xlabel="round", ylabel="distortion / mean final", title="spread over seeds")
    right.legend(fontsize=8)
    FIGURES.mkdir(parents=True, exist_ok=True)
    path = FIGURES / "quantization_convergence.png"
    figure.savefig(path, dpi=120)
    return path
