"""Names on a map: none covers another, few points all get one, many get those that spread over the map."""

from xml.etree import ElementTree

import numpy as np
import pytest

from nearkin.plots.figures import ALL, label_points, spread_order
from nearkin.plots.style import new_axes, to_svg


def labelled(at, names, first=()):
    ax = new_axes(6.4, 5.6)
    ax.scatter(*at.T, s=14)
    written = label_points(ax, at, names, first)
    ax.get_figure().draw_without_rendering()
    return ax, written


def overlaps(ax):
    boxes = [text.get_window_extent().padded(-0.5) for text in ax.texts]
    return sum(box.count_overlaps(boxes[:n]) for n, box in enumerate(boxes))


@pytest.mark.parametrize("spread", [1.0, 0.02])
def test_few_points_all_get_a_name_and_none_covers_another(spread):
    """At .02 most of the points lie in one heap."""
    rng = np.random.default_rng(0)
    at = np.concatenate([rng.normal(0, spread, (ALL - 10, 2)), rng.normal(0, 1, (10, 2))])
    ax, written = labelled(at, [f"object {n}" for n in range(ALL)])
    assert sorted(written) == list(range(ALL))
    assert overlaps(ax) == 0


def test_above_fifty_those_that_matter_stay():
    at = np.random.default_rng(1).normal(size=(400, 2))
    ax, written = labelled(at, [f"object {n}" for n in range(400)], first=[7, 3])
    assert overlaps(ax) == 0
    assert written[:2] == [7, 3]
    assert 40 < len(written) < 400
    assert int(np.abs(at).sum(axis=1).argmax()) in written


def test_names_are_text_whatever_they_hold():
    ax, _ = labelled(np.eye(3, 2), ["$x", "a $b$ c", "$\\\\frac$"])
    assert {text.get_text() for text in ax.texts} == {"$x", "a $b$ c", "$\\\\frac$"}


def test_spread_order_starts_outside_and_ends_with_twins():
    assert spread_order(np.array([[0.0, 0], [0, 0.1], [9, 0], [-9, 1]]), 4)[:2] == [3, 2]
    assert len(set(spread_order(np.zeros((5, 2)), 5))) == 5


def test_names_of_any_script_and_with_control_characters_are_drawn() -> None:
    """Before, matplotlib's warning of letters that its font lacks reached the terminal, and the SVG was no XML."""
    ax = new_axes()
    names = ["\N{CJK UNIFIED IDEOGRAPH-6F22}", "a\x14b", "$x_{", "plain"]
    assert len(label_points(ax, np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]]), names)) == 4
    svg = to_svg(ax, "f")
    ElementTree.fromstring(svg)
    assert "\N{CJK UNIFIED IDEOGRAPH-6F22}" in svg
    assert "$x_{" in svg
