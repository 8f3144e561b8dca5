"""Figures from the JSON of `run.py`; nothing is computed anew."""

from typing import Any

import numpy as np

from benchmarks.drawing import OURS, REST, RIVAL, legend, panels, save, styles

SHOWN = {"OgE": OURS, "OnE": OURS, "FAISS ITQ": RIVAL, "spherical": REST, "PCA": REST, "random hyperplanes": REST}
TITLES = {"raw": "MNIST pixels", "network": "network features, unseen classes"}
MEASURES = {"map": "mAP of labels, %", "neighbour map": "mAP of 100 neighbours, %"}


def draw_bits(rows: list[dict[str, Any]]) -> None:
    """Both measures against the number of bits: ours, FAISS's ITQ and three others; bands from least to most."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure, axes = panels(len(sets), 2, 5.2, 3.6)
    for line, features in zip(axes, sets, strict=True):
        for axis, (measure, label) in zip(line, MEASURES.items(), strict=True):
            for method, style in styles(SHOWN).items():
                own = [row for row in rows if (row["set"], row["method"]) == (features, method)]
                bits = sorted({row["bits"] for row in own})
                values = [[row[measure] for row in own if row["bits"] == b] for b in bits]
                axis.plot(bits, [np.mean(seeds) for seeds in values], **style)
                low, high = ([limit(seeds) for seeds in values] for limit in (min, max))
                axis.fill_between(bits, low, high, alpha=0.2, color=style["color"])
            axis.set(title=TITLES[features], xlabel="bits", ylabel=label, xticks=bits)
    legend(axes[0, 0])
    save(figure, "hashing_bits")
