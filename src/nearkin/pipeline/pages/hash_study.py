"""The report's section of a hashing study: which method at how many bits, and what the scale does."""

from collections.abc import Sequence

from nearkin._types import Fields
from nearkin.plots import plot_against_bytes, to_svg
from nearkin.report import Section
from nearkin.report.parts import figures

_MEASURES = {"label map": "mAP by label", "neighbour map": "mAP of the 100 exact neighbours"}
_CURVES = {"loss per bit": "quantization loss per bit", "retained variance": "variance kept, share of PCA's"}


def study_section(record: Fields | None) -> Section | None:
    """Figures of what `study_hashing` found, if an evaluation holds any."""
    study = (record or {}).get("study")
    if not study:
        return None
    bits, scales = study["bits"], study["scales"]
    drawn = [_figure(bits, "bits", "bits", name, text) for name, text in _MEASURES.items() if name in bits[0]]
    measures = _MEASURES | _CURVES
    drawn += [_figure(scales, "multiple", "scale, multiples of eq. 25's", name, measures[name])
              for name in (*_CURVES, *_MEASURES) if scales and name in scales[0]]  # fmt: skip
    lead = (
        f"Learned from {study['rows']:,} of the indexed rows and judged by {study['queries']:,} others. Keeping labels "
        "together and keeping neighbours are different goals: a method can be best at one and not at the other."
    )
    return Section("Methods, bits and scale", figures(*drawn), lead)


def _figure(entries: Sequence[Fields], x: str, xlabel: str, measure: str, ylabel: str) -> tuple[str, str]:
    series: dict[str, dict[float, float]] = {}
    for entry in entries:
        series.setdefault(entry["method"], {})[entry[x]] = entry[measure]
    svg = to_svg(plot_against_bytes(series, ylabel, xlabel=xlabel), f"{x}-{measure}".replace(" ", "-"))
    return svg, f"{ylabel} against {xlabel}"
