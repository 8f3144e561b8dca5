"""Figures show the numbers they are given, and become SVG that follows the page's colours."""

import numpy as np
import pytest

from nearkin.plots import new_axes, plot_against_bytes, plot_convergence, to_svg
from nearkin.plots.style import SERIES


def test_convergence_draws_one_curve_a_method() -> None:
    ax = plot_convergence({"a": [3, 2, 1], "b": [2, 1]})
    assert [line.get_ydata().tolist() for line in ax.lines] == [[3, 2, 1], [2, 1]]
    assert ax.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_against_bytes_sorts_the_sizes_and_marks_them() -> None:
    ax = plot_against_bytes({"a": {8: 0.9, 2: 0.5}}, "recall", reference=("exact", 1.0))
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[2, 0.5], [8, 0.9]])
    assert ax.get_xticks().tolist() == [2, 8]
    assert ax.get_ylabel() == "recall"
    assert ax.lines[1].get_ydata()[0] == 1.0


def test_sizes_that_would_touch_are_named_once() -> None:
    """Before, 120, 124 and 128 bytes were printed over one another."""
    ax = plot_against_bytes({"a": {7: 0.4, 8: 0.45, 10: 0.5}, "b": {120: 0.9, 124: 0.91, 128: 0.92}}, "recall")
    assert ax.get_xticks().tolist() == [8, 10, 128]
    assert ax.lines[1].get_xdata().tolist() == [120, 124, 128]


def test_figures_are_drawn_on_given_axes() -> None:
    ax = new_axes()
    assert plot_convergence({"a": [1]}, ax) is ax
    assert plot_against_bytes({"a": {2: 1}}, "y", ax) is ax


def test_svg_is_inline_coloured_by_the_page_and_repeatable() -> None:
    ax = plot_convergence({"a": [2, 1], "b": [3, 1]})
    svg = to_svg(ax, "curve")
    assert svg.startswith("<svg")
    assert f"var(--series-1, {SERIES[0]})" in svg
    assert ">iteration</text>" in svg  # text stays text
    assert 'id="curve-' in svg
    assert " width=" not in svg.split(">")[0]
    assert svg == to_svg(ax, "curve")


def test_no_global_figure_is_made() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    before = plt.get_fignums()  # examples leave theirs behind
    plot_convergence({"a": [1, 2]})
    assert plt.get_fignums() == before


def test_names_are_no_mathematics() -> None:
    """Before, a name such as "$x_{" of a curve or an axis ended in matplotlib's parser."""
    ax = plot_against_bytes({"$x_{": {8: 0.9, 2: 0.5}}, "$y_{", reference=("$z_{", 1.0))
    svg = to_svg(ax, "f")
    assert all(name in svg for name in ("$x_{", "$y_{", "$z_{"))


def test_a_narrow_range_is_written_out() -> None:
    """Before, the axis read 0.0060 to 0.0085 under a small "+3.7191e2"."""
    ax = plot_convergence({"a": [371.9187, 371.916]}, new_axes())
    svg = to_svg(ax, "f")
    assert ">371.916" in svg
    assert "+3.719" not in svg


def test_a_wide_picture_is_marked_so_that_a_phone_scrolls_it() -> None:
    assert 'class="wide"' in to_svg(plot_convergence({"a": [2, 1]}, new_axes(7.0, 3.0)), "f")
    assert 'class="wide"' not in to_svg(plot_convergence({"a": [2, 1]}), "f")
