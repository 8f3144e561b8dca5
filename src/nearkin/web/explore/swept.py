"""What `nearkin sweep --json` measured: recall against bytes and queries a second, as a table and as pictures."""

import json
import os
from dataclasses import dataclass

from nearkin._storage import regular_file
from nearkin._types import Record
from nearkin.plots import new_axes, plot_against_bytes
from nearkin.plots.style import legend, series_style
from nearkin.web.drawing import png


@dataclass(frozen=True)
class Swept:
    """The trials of a sweep: method, bytes, recall by oversampling ("1" is the codes alone), queries a second."""

    k: int
    target: float
    trials: list[Record]

    def record(self) -> Record:
        """The table."""
        keys = ("method", "bytes", "queries_per_second")
        rows = [
            {**{key: trial[key] for key in keys}, "recall": trial["recall"]["1"], "rescored": trial["recall"].get("4")}
            for trial in sorted(self.trials, key=lambda trial: (trial["bytes"], trial["method"]))
        ]
        return {"k": self.k, "trials": rows}

    def picture(self, name: str, dark: bool = False) -> bytes | None:
        """ "bytes": recall against bytes; "speed": recall against queries a second, PNG; None for another name."""
        if name not in ("bytes", "speed"):
            return None
        methods = list(dict.fromkeys(trial["method"] for trial in self.trials))
        label, ax = f"recall {self.k}@{self.k}", new_axes(5.4, 3.4)
        if name == "bytes":
            curves = {m: {float(t["bytes"]): t["recall"]["1"] for t in self._of(m)} for m in methods}
            return png(plot_against_bytes(curves, label, ax, reference=(f"{self.target:g} wanted", self.target)), dark)
        styles = series_style(methods)
        for method in methods:
            points = sorted((t["recall"]["1"], t["queries_per_second"]) for t in self._of(method))
            ax.plot(*zip(*points, strict=True), label=method, **styles[method])
        ax.set_xlabel(label)
        ax.set_ylabel("queries a second")
        ax.set_yscale("log")
        legend(ax)
        return png(ax, dark)

    def _of(self, method: str) -> list[Record]:
        return [trial for trial in self.trials if trial["method"] == method]


def read_sweep(path: str | os.PathLike) -> Swept:
    """The record that `nearkin sweep --json` prints; ValueError for another file."""
    try:
        record = json.loads(regular_file(path).read_text(encoding="utf-8"))
        trials = [
            {
                "method": str(trial["method"]),
                "bytes": int(trial["bytes"]),
                "queries_per_second": float(trial["queries_per_second"]),
                "recall": {str(o): float(value) for o, value in trial["recall"].items() if o in ("1", "4")},
            }
            for trial in record["trials"]
        ]
        if not trials or any("1" not in trial["recall"] for trial in trials):
            raise KeyError("recall of the codes alone")
        return Swept(int(record["k"]), float(record["target"]), trials)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no record of `nearkin sweep ... --json > {path}` ({error!r})") from error
