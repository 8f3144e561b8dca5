import numpy as np

from nearkin.data.comparisons import comparisons_from_array
from nearkin.plots.figures import plot_error, plot_map, worst_comparisons
from nearkin.plots.style import letters_without_font

X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [5.0, 5.0]])


def test_map_names_its_objects_and_draws_what_crosses():
    answers = comparisons_from_array([[0, 1, 2], [0, 3, 1], [0, 2, 1]])
    ax = plot_map(X, ["a", "b", "c", "d"], answers)
    assert sorted(text.get_text() for text in ax.texts) == ["a", "b", "c", "d"]
    assert len(ax.lines) == 4  # two answers are violated, two lines each
    assert len(plot_map(X, ["x"] * 4, comparisons_from_array([[0, 1, 2]])).lines) == 0


def test_the_legend_says_what_the_lines_are():
    ax = plot_map(X, list("abcd"), comparisons_from_array([[0, 1, 2], [0, 3, 1], [0, 2, 1]]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "said to be nearer: the 2 answers of 3 that the map violates most",
        "said to be farther, in the same answers",
    ]


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


def test_worst_come_first():
    answers = comparisons_from_array([[0, 2, 1], [0, 1, 2], [0, 3, 1]])
    assert worst_comparisons(X, answers, 5).tolist() == [[0, 3, 0, 1], [0, 2, 0, 1]]


def test_one_dimension_lies_on_a_line():
    ax = plot_map(np.arange(3.0)[:, None], list("abc"), reference=np.ones((3, 2)))
    assert np.ptp(np.asarray(ax.collections[-1].get_offsets())[:, 1]) == 0


def test_error_curves():
    ax = plot_error(
        {"sgd": {3: 0.2, 1: 0.4}, "svrg": {1: 0.3, 3: 0.1}},
        "epochs",
        spread={"sgd": {1: (0.3, 0.5), 3: (0.1, 0.3)}},
    )
    assert ax.lines[0].get_xydata().tolist() == [[1, 0.4], [3, 0.2]]
    assert ax.get_ylim()[0] == 0
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"sgd", "svrg"}


def test_letters_that_a_bitmap_cannot_show_are_named() -> None:
    """embed printed matplotlib's warnings, and map.png showed boxes in silence."""
    assert letters_without_font(["Straße", "été"]) == ""
    assert letters_without_font(["東京", "a", "京都"]) == "東京都"
