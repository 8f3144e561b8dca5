"""Quality and time of each method, and cost against size, from the JSON."""

from matplotlib.ticker import NullFormatter

from benchmarks.drawing import GREY, OURS, REST, RIVAL, legend, panels, save, styles
from nearkin.plots.style import SERIES

_THEIRS = "implicit als"


def draw_methods(name: str, rows: list[dict]) -> None:
    """A row a method, the best at the top: no two names touch."""
    figure, ((quality, time),) = panels(1, 2, 4.2, 4.2, sharey=True)
    order = sorted((row for row in rows if row["seconds"] > 0), key=lambda row: row["ndcg@100"])
    for place, row in enumerate(order):
        best, theirs = place == len(order) - 1, row["way"] == _THEIRS
        colour, mark = (SERIES[1], "s") if theirs else (SERIES[0] if best else GREY, "o")
        quality.plot(row["ndcg@100"], place, mark, color=colour)
        time.plot(row["seconds"], place, mark, color=colour)
    quality.set_yticks(range(len(order)), [row["way"] for row in order])
    quality.set(xlabel="test NDCG@100", title=f"{name}, k = 64")
    quality.locator_params(axis="x", nbins=5)
    time.set(xscale="log", xlabel="CPU seconds of one thread")
    time.xaxis.set_minor_formatter(NullFormatter())
    save(figure, f"two_tower_{name}")


def draw_scaling(rows: list[dict]) -> None:
    figure, ((panel,),) = panels(1, 1, 5.5, 4)
    for key, style in styles({"gradient": OURS, "product": OURS, "brute force": RIVAL, "floor": REST}).items():
        known = [row for row in rows if row.get(key)]
        panel.loglog([row["m"] for row in known], [row[key] for row in known], **style)
    panel.set(xlabel="m = n", ylabel="CPU milliseconds", title="k = 64, 100 pairs a vector, one thread")
    legend(panel)
    save(figure, "two_tower_scaling")
