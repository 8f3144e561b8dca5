"""How many bytes does a vector need? Recall against bytes, and what four bytes look like (the README's picture).

python examples/how_many_bytes.py --out docs/images
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from nearkin.pipeline import run_demo
from nearkin.pipeline.demo import METHODS, Demo
from nearkin.plots import plot_against_bytes
from nearkin.plots.style import INK, SERIES, dress

SHOWN = "OPQ", 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="folder for digits.png (default: no picture)")
    out = parser.parse_args().out

    demo = run_demo(random_state=0)
    recall = {name: {t.n_bytes: t.recall for t in demo.trials if t.method == name} for name in METHODS.values()}
    for name, by_size in recall.items():
        print(f"{name:14s}", "  ".join(f"{size:2d} bytes: {value:.3f}" for size, value in by_size.items()))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        draw(demo, recall).savefig(out / "digits.png", dpi=160, facecolor="white")


def draw(demo: Demo, recall: dict[str, dict[int, float]]) -> Figure:
    """The curves, and five queries with their exact neighbours and those found through four bytes."""
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.15])
    ax = dress(left.add_subplot())
    plot_against_bytes(recall, "recall@10 against exact search", ax)
    ax.set_title("A learned rotation keeps more neighbours at the same size", loc="left", fontsize=10)
    right.suptitle("Query, its exact neighbours, and those through 4 bytes (64 times smaller)", fontsize=10, color=INK)
    found = demo.trial(*SHOWN).ids
    digits = (0, 2, 3, 5, 8)
    axes = right.subplots(2 * len(digits), 11)
    for row, digit in enumerate(digits):
        query = int(np.argmax(demo.query_labels == digit))
        for line, ids in enumerate((demo.trials[0].ids[query], found[query])):
            images = [demo.queries[query] if line == 0 else None, *demo.base[ids]]
            hits = [False, *np.isin(ids, demo.trials[0].ids[query]) & (line == 1)]
            for ax, image, hit in zip(axes[2 * row + line], images, hits, strict=True):
                show(ax, image, hit)
    return figure


def show(ax, image: np.ndarray | None, hit: bool) -> None:
    """One digit, framed if the codes found what exact search finds."""
    ax.set_xticks([])
    ax.set_yticks([])
    if image is not None:
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
    for spine in ax.spines.values():
        spine.set(visible=hit, color=SERIES[2], linewidth=1.6)


if __name__ == "__main__":
    main()
