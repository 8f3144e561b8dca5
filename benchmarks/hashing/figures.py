"""Figures from the JSON of `run.py`; nothing is computed anew."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

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
    """Both measures against the number of bits, all methods."""
    figure, axes = plt.subplots(len(results), 2, figsize=(13, 5.2 * len(results)), squeeze=False, layout="constrained")
    names = list(dict.fromkeys(method for methods in results.values() for method in methods))
    for row, (features, methods) in zip(axes, results.items(), strict=True):
        for axis, (measure, label) in zip(row, MEASURES.items(), strict=True):
            for i, method in enumerate(names):  # one colour a method in all panels
                by_bits = methods.get(method, {})
                bits = sorted(by_bits)
                means = [np.mean(by_bits[b][measure]) for b in bits]
                axis.plot(bits, means, "os^Dv"[i % 5] + "-", color=plt.cm.tab20(i % 20), label=method, markersize=4)
            axis.set(title=TITLES[features], xlabel="bits", ylabel=label, xticks=bits)
    axes[0, 1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, file)


def draw_scale(scale: dict[str, dict[str, float]], file: Path) -> None:
    """SCQ's Figure 4 with a curve for neighbours: the scale in units of eq. 25."""
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    for row, features in zip(axes, TITLES, strict=True):
        for axis, method in zip(row, ("OnE", "OgE"), strict=True):
            points = sorted(
                (float(k.split("|")[3]), v) for k, v in scale.items() if k.startswith(f"{features}|{method}|")
            )
            if not points:
                continue
            factors = [factor for factor, _ in points]
            for measure, color in zip(MEASURES, ("tab:green", "tab:purple"), strict=True):
                axis.plot(factors, [v[measure] for _, v in points], "o-", color=color, label=MEASURES[measure])
            axis.plot(
                factors, [100 * v["retained"] for _, v in points], "s--", color="tab:red", label="retained variance, %"
            )
            axis.set(
                xscale="log",
                title=f"{method}, 32 bits, {TITLES[features]}",
                xlabel="scale / scale of eq. 25",
                ylabel="%",
            )
            axis.invert_xaxis()
            axis.axvline(1, color="grey", linewidth=0.7)
            loss = axis.twinx()
            loss.plot(
                factors, [v["loss per bit"] for _, v in points], "d:", color="tab:blue", label="loss per bit (right)"
            )
            loss.set_ylim(0)
    handles = [*axes[0, 0].get_lines()[:3], *loss.get_lines()]
    axes[0, 0].legend(handles=handles, fontsize=8)
    save(figure, file)


def save(figure: Any, file: Path) -> None:
    """Write an SVG whose bytes depend on the data only."""
    plt.rcParams["svg.hashsalt"] = "nearkin"
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
