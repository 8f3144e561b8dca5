"""How many bytes does a vector need? Recall against bytes, and what four bytes look like (the README's picture).

python examples/how_many_bytes.py --out docs/images
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import nearkin as nk
from nearkin.jobs.demo import METHODS, RECALL, demo, digits
from nearkin.plots import plot_against_bytes
from nearkin.plots.style import INK, SERIES, house_style

QUERIES = (0, 2, 3, 5, 8)  # the digits of the queries in the picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="folder for digits.png (default: no picture)")
    out = parser.parse_args().out

    with tempfile.TemporaryDirectory() as folder:
        trials = demo(out=f"{folder}/demo")["trials"]
    recall = {name: {t["bytes"]: t[RECALL] for t in trials if t["method"] == name} for name in METHODS.values()}
    for name, by_size in recall.items():
        print(f"{name:14s}", "  ".join(f"{size:2d} bytes: {value:.3f}" for size, value in by_size.items()))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        draw(recall).savefig(out / "digits.png", dpi=160, facecolor="white")


def draw(recall: dict[str, dict[int, float]]) -> Figure:
    """The curves, and five queries with their exact neighbours and those found through four bytes."""
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.15])
    with house_style():
        ax = left.add_subplot()
    plot_against_bytes(recall, "recall@10 against exact search", ax)
    ax.set_title("A learned rotation keeps more neighbours at the same size", loc="left", fontsize=10)
    right.suptitle("Query, its exact neighbours, and those through 4 bytes (64 times smaller)", fontsize=10, color=INK)
    base, _, queries, labels = digits()
    codes = nk.ProductQuantizer(8, 16, "procrustes", random_state=0)  # 8 codes of half a byte
    exact, found = (nk.Index.build(base, quantizer).search(queries, 10)[1] for quantizer in (None, codes))
    axes = right.subplots(2 * len(QUERIES), 11)
    for row, digit in enumerate(QUERIES):
        query = int(np.argmax(labels == digit))
        for line, ids in enumerate((exact[query], found[query])):
            images = [queries[query] if line == 0 else None, *base[ids]]
            hits = [False, *np.isin(ids, exact[query]) & (line == 1)]
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
