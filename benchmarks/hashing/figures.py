"""Figures from the JSON of `run.py`; nothing is computed anew."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.drawing import OURS, REST, RIVAL, legend, panels, save, styles
from nearkin.plots.style import SERIES, dress

SHOWN = {"OgE": OURS, "OnE": OURS, "FAISS ITQ": RIVAL, "spherical": REST, "PCA": REST, "random hyperplanes": REST}
TITLES = {"raw": "MNIST pixels", "network": "network features, unseen classes"}
MEASURES = {"map": "mAP of labels, %", "neighbour map": "mAP of 100 neighbours, %"}


def draw(content: dict[str, Any], folder: Path, name: str) -> None:
    """Write figures for the parts that are there."""
    if content.get("table"):
        results = collect(content["table"])
        draw_bits(results, folder / f"{name}_bits.svg")
    if content.get("scale"):
        draw_scale(content["scale"], folder / f"{name}_scale.svg")


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


def draw_scale(scale: dict[str, dict[str, float]], file: Path) -> None:
    """SCQ's Figure 4 with a curve for neighbours: the scale in units of eq. 25."""
    figure, axes = panels(2, 2, 5.2, 3.6)
    for row, features in zip(axes, TITLES, strict=True):
        for axis, method in zip(row, ("OnE", "OgE"), strict=True):
            points = sorted(
                (float(k.split("|")[3]), v) for k, v in scale.items() if k.startswith(f"{features}|{method}|")
            )
            if not points:
                continue
            factors = [factor for factor, _ in points]
            for measure, line, color in zip(MEASURES, ("o-", "s--"), SERIES[:2], strict=True):
                axis.plot(factors, [v[measure] for _, v in points], line, color=color, label=MEASURES[measure])
            retained = [100 * v["retained"] for _, v in points]
            axis.plot(factors, retained, "^:", color=SERIES[2], label="retained variance, %")
            axis.set(
                xscale="log",
                title=f"{method}, 32 bits, {TITLES[features]}",
                xlabel="scale / scale of eq. 25",
                ylabel="%",
            )
            axis.invert_xaxis()
            axis.axvline(1, color=SERIES[5], linewidth=0.7)
            loss = dress(axis.twinx())
            per_bit = [v["loss per bit"] for _, v in points]
            loss.plot(factors, per_bit, "d-.", color=SERIES[3], label="loss per bit (right)")
            loss.set_ylim(0)
            loss.grid(visible=False)
    legend(axes[0, 0], handles=[*axes[0, 0].get_lines()[:3], *loss.get_lines()])
    save(figure, file.stem, file.parent)
