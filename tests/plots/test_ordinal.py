import numpy as np
import pytest

from nearkin.data.comparisons import comparisons_from_array
from nearkin.plots.ordinal import MAX_NAMES, plot_error, plot_map, worst_comparisons

X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [5.0, 5.0]])


def test_map_names_its_objects_and_draws_what_crosses():
    answers = comparisons_from_array([[0, 1, 2], [0, 3, 1], [0, 2, 1]])
    ax = plot_map(X, ["a", "b", "c", "d"], answers)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c", "d"]
    assert len(ax.lines) == 4  # two answers are violated, two lines each
    assert len(plot_map(X, ["x"] * 4, comparisons_from_array([[0, 1, 2]])).lines) == 0
    assert not plot_map(np.zeros((MAX_NAMES + 1, 2)), ["x"] * (MAX_NAMES + 1)).texts


def test_worst_come_first():
    answers = comparisons_from_array([[0, 2, 1], [0, 1, 2], [0, 3, 1]])
    assert worst_comparisons(X, answers, 5).tolist() == [[0, 3, 0, 1], [0, 2, 0, 1]]


def test_one_dimension_lies_on_a_line():
    ax = plot_map(np.arange(3.0)[:, None], list("abc"), reference=np.ones((3, 2)))
    assert np.ptp(np.asarray(ax.collections[-1].get_offsets())[:, 1]) == 0


@pytest.mark.parametrize("logarithmic", [False, True])
def test_error_curves(logarithmic):
    ax = plot_error(
        {"sgd": {3: 0.2, 1: 0.4}, "svrg": {1: 0.3, 3: 0.1}},
        "epochs",
        logarithmic=logarithmic,
        spread={"sgd": {1: (0.3, 0.5), 3: (0.1, 0.3)}},
    )
    assert ax.lines[0].get_xydata().tolist() == [[1, 0.4], [3, 0.2]]
    assert ax.get_ylim()[0] == 0
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"sgd", "svrg"}
