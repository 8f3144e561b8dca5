"""The paper's Figure 2 from the JSON."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drawing import OURS, REST, RIVAL, legend, panels, save, styles

_RULES = {
    "procrustes": OURS, "givens-greedy": OURS, "givens-steepest": OURS, "cayley": RIVAL, "givens-random": REST,
}  # fmt: skip


def draw(results: dict[str, Any]) -> Path:
    figure, ((left, right),) = panels(1, 2, 5.2, 3.8)
    for name, style in styles(_RULES).items():
        left.plot(*zip(*results["lines"][name], strict=True), markevery=6, **style)
    left.set(xlabel="CPU seconds", ylabel="distortion (training rows)", title="sift_bsds, 8 bytes, from the identity")
    best = min(stamps[-1][1] for stamps in results["lines"].values())
    left.set_ylim(0.99 * best, 1.2 * best)
    legend(left)
    roles = {name: OURS if name.startswith("givens") else REST for name in results["spread"]}
    for name, style in styles(roles).items():
        runs = results["spread"][name]
        shortest = min(map(len, runs))  # a run ends when nothing falls any more
        curves = np.array([run[:shortest] for run in runs])
        relative = curves / curves[:, -1].mean()
        mean, deviation = relative.mean(0), relative.std(0)
        right.plot(mean, markevery=4, **style | {"label": f"{name} of the rows"})
        right.fill_between(range(len(mean)), mean - deviation, mean + deviation, alpha=0.2, color=style["color"])
    right.set(xlabel="round", ylabel="distortion / mean final", title="mean and deviation over seeds")
    legend(right)
    return save(figure, "quantization_convergence")
