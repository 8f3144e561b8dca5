"""Figures show the numbers they are given, names on a map cover none, and SVG follows the page's colours."""

from xml.etree import ElementTree

import numpy as np
import pytest

from nearkin.plots import new_axes, plot_against_bytes, plot_convergence, to_svg
from nearkin.plots.figures import ALL, label_points, plot_error, plot_map
from nearkin.plots.style import SERIES, letters_without_font
from tests.covering import each


def test_convergence_draws_one_curve_a_method() -> None:
    ax = plot_convergence({"a": [3, 2, 1], "b": [2, 1]})
    assert [line.get_ydata().tolist() for line in ax.lines] == [[3, 2, 1], [2, 1]]
    assert ax.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_against_bytes_sorts_the_sizes_and_marks_them() -> None:
    ax = plot_against_bytes({"a": {8: 0.9, 2: 0.5}}, "recall", reference=("exact", 1.0))
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[2, 0.5], [8, 0.9]])
    assert ax.lines[1].get_ydata()[0] == 1.0


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


X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [5.0, 5.0]])


def test_a_map_of_more_dimensions_says_so():
    assert plot_map(np.eye(5)).get_xlabel() == "2 of 5 dimensions shown, those of the largest variance"
    assert plot_map(X).get_xlabel() == ""


def test_an_ellipse_holds_its_draws():
    draws = X + np.random.default_rng(0).normal(0, [0.2, 0.05], (400, 4, 2))
    ellipses = plot_map(X, draws=draws, level=0.9).patches
    assert len(ellipses) == 4
    held = [
        e.get_path().transformed(e.get_patch_transform()).contains_points(draws[:, n]).mean()
        for n, e in enumerate(ellipses)
    ]
    np.testing.assert_allclose(held, 0.9, atol=0.04)


def test_one_dimension_lies_on_a_line():
    ax = plot_map(np.arange(3.0)[:, None], list("abc"), reference=np.ones((3, 2)))
    assert np.ptp(np.asarray(ax.collections[-1].get_offsets())[:, 1]) == 0


def test_error_curves():
    ax = plot_error({"sgd": {3: 0.2, 1: 0.4}, "svrg": {1: 0.3, 3: 0.1}}, "epochs")
    assert ax.lines[0].get_xydata().tolist() == [[1, 0.4], [3, 0.2]]
    assert ax.get_ylim()[0] == 0
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"sgd", "svrg"}


def test_letters_that_a_bitmap_cannot_show_are_named() -> None:
    """embed printed matplotlib's warnings, and map.png showed boxes in silence."""
    assert letters_without_font(["Straße", "été"]) == ""
    assert letters_without_font(["東京", "a", "京都"]) == "東京都"


def labelled(at, names):
    ax = new_axes(6.4, 5.6)
    ax.scatter(*at.T, s=14)
    written = label_points(ax, at, names)
    ax.get_figure().draw_without_rendering()
    return ax, written


def overlaps(ax):
    boxes = [text.get_window_extent().padded(-0.5) for text in ax.texts]
    return sum(box.count_overlaps(boxes[:n]) for n, box in enumerate(boxes))


@each("spread", [1.0, 0.02])
def test_few_points_all_get_a_name_and_none_covers_another(spread):
    """At .02 most of the points lie in one heap."""
    rng = np.random.default_rng(0)
    at = np.concatenate([rng.normal(0, spread, (ALL - 10, 2)), rng.normal(0, 1, (10, 2))])
    ax, written = labelled(at, [f"object {n}" for n in range(ALL)])
    assert sorted(written) == list(range(ALL))
    assert overlaps(ax) == 0


def test_above_fifty_those_that_fit_stay():
    at = np.random.default_rng(1).normal(size=(150, 2))
    ax, written = labelled(at, [f"object {n}" for n in range(150)])
    assert overlaps(ax) == 0
    assert 40 < len(written) < 150


def test_names_are_text_whatever_they_hold():
    ax, _ = labelled(np.eye(3, 2), ["$x", "a $b$ c", "$\\\\frac$"])
    assert {text.get_text() for text in ax.texts} == {"$x", "a $b$ c", "$\\\\frac$"}


def test_names_of_any_script_and_with_control_characters_are_drawn() -> None:
    """Before, matplotlib's warning of letters that its font lacks reached the terminal, and the SVG was no XML."""
    ax = new_axes()
    names = ["\N{CJK UNIFIED IDEOGRAPH-6F22}", "a\x14b", "$x_{", "plain"]
    assert len(label_points(ax, np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]]), names)) == 4
    svg = to_svg(ax, "f")
    ElementTree.fromstring(svg)
    assert "\N{CJK UNIFIED IDEOGRAPH-6F22}" in svg
    assert "$x_{" in svg
