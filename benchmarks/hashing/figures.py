"""Figures from the JSON of `run.py`; nothing is computed anew."""

from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.drawing import OURS, REST, RIVAL, legend, panels, save, styles

SHOWN = {"OgE": OURS, "OnE": OURS, "FAISS ITQ": RIVAL, "spherical": REST, "PCA": REST, "random hyperplanes": REST}
TITLES = {"raw": "MNIST pixels", "network": "network features, unseen classes"}
MEASURES = {"map": "mAP of labels, %", "neighbour map": "mAP of 100 neighbours, %"}


def collect(table: dict[str, dict[str, float]]) -> dict[str, dict[str, dict[int, dict[str, list[float]]]]]:
    """features -> method -> bits -> measure -> values over seeds."""
    results: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(list))))
    for key, row in table.items():
        features, method, bits, _ = key.split("|")
        for measure, value in row.items():
            results[features][method][int(bits)][measure].append(value)
    return results


def draw_bits(results: dict, file: Path) -> None:
    """Both measures against the number of bits: ours, FAISS's ITQ and three others; bands from least to most."""
    figure, axes = panels(len(results), 2, 5.2, 3.6)
    for row, (features, methods) in zip(axes, results.items(), strict=True):
        for axis, (measure, label) in zip(row, MEASURES.items(), strict=True):
            for method, style in styles(SHOWN).items():
                by_bits = methods.get(method, {})
                bits = sorted(by_bits)
                values = [by_bits[b][measure] for b in bits]
                axis.plot(bits, [np.mean(seeds) for seeds in values], **style)
                low, high = ([limit(seeds) for seeds in values] for limit in (min, max))
                axis.fill_between(bits, low, high, alpha=0.2, color=style["color"])
            axis.set(title=TITLES[features], xlabel="bits", ylabel=label, xticks=bits)
    legend(axes[0, 0])
    save(figure, file.stem, file.parent)
