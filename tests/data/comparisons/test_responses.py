"""Responses in the ways they are written, and ratings as comparisons."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.data.comparisons.reading import rated_quadruplets
from tests.covering import each

ROWS = [["p", "q", "r"], ["q", "r", "p"]]  # the first object of the two is chosen, then the second


def read(tmp_path, head, responses, **options):
    lines = [",".join([*row, str(answer)]) for row, answer in zip(ROWS, responses, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join([head, *lines]) + "\n")
    found = nk.read_comparisons(tmp_path / "a.csv", **options)
    return found.objects[found.indices].tolist()


@each(
    ("head", "responses"),
    [
        ("anchor,left,right,response", ["left", "right"]),
        ("anchor,left,right,response", ["L", "R"]),
        ("anchor,left_image,right_image,response", ["left", "right"]),
        ("anchor,a,b,response", ["A", "B"]),
        ("anchor,a,b,response", [1, 2]),
        ("anchor,a,b,response", [1, -1]),
        ("anchor,a,b,response", ["True", "False"]),
        ("anchor,a,b,response", ["first", "second"]),
        ("anchor,option1,option2,choice", ["option1", "option2"]),
        ("anchor,a,b,chosen", ["q", "p"]),
        ("anchor,near,far,response", [1, 0]),
    ],
)
def test_the_chosen_object_is_the_nearer(tmp_path, head, responses):
    if "image" in head:
        found = read(tmp_path, head, responses, anchor="anchor", near="left_image", far="right_image")
    else:
        found = read(tmp_path, head, responses)
    assert found == [["p", "q", "r"], ["q", "p", "r"]]


def test_two_readings_are_asked_and_answered(tmp_path):
    with pytest.raises(ValueError, match=r"can mean .* type response='response=1'"):
        read(tmp_path, "anchor,a,b,response", [1, 0])
    assert read(tmp_path, "anchor,a,b,response", [1, 0], response="response=1")[1] == ["q", "p", "r"]
    assert read(tmp_path, "anchor,a,b,response", [0, 1], response="response=0")[1] == ["q", "p", "r"]
    with pytest.raises(ValueError, match="'7' cannot choose the first"):
        read(tmp_path, "anchor,a,b,response", [0, 1], response="response=7")


def test_a_position_that_may_be_a_name_is_asked(tmp_path):
    """Objects called 1 and 2: the answer 1 is the first object, or the object 1."""
    (tmp_path / "a.csv").write_text("anchor,a,b,response\n3,2,1,1\n3,2,1,2\n")
    with pytest.raises(ValueError, match="1 the first, 2 the second or the name of the chosen object"):
        nk.read_comparisons(tmp_path / "a.csv")


@each("answer", ["", "maybe", "3"])
def test_answers_that_say_nothing_are_refused(tmp_path, answer):
    with pytest.raises(ValueError, match=r"row 1|row 0|has no response"):
        read(tmp_path, "anchor,near,far,response", [1, answer])


@each("answers", [["p", "p"], [1, 3]])
def test_the_odd_one_is_named_or_numbered(tmp_path, answers):
    found = read(tmp_path, "one,two,three,odd", answers, form="odd-one-out")
    assert found == [["q", "r", "p"], ["r", "q", "p"], ["q", "r", "p"], ["r", "q", "p"]]


def test_ratings_are_compared_within_a_person(tmp_path):
    rows = ["x,y,similarity,rater", "a,b,5,ann", "a,c,1,ann", "b,c,4,bob", "c,a,2,bob", "a,b,3,bob", "b,a,1,bob"]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    found = nk.read_comparisons(tmp_path / "a.csv")
    named = {"".join(row) for row in found.objects[found.indices].tolist()}
    assert named == {"abac", "bcca", "bcab", "bcba", "abca", "caba"}  # not a pair with itself, not ann with bob
    assert sorted(set(found.annotators.tolist())) == ["ann", "bob"]


def test_ratings_are_true_and_few():
    rng = np.random.default_rng(0)
    pairs = np.stack([np.arange(500), np.arange(500) + 500], axis=1)
    ratings = rng.normal(size=500)
    rows, origin = rated_quadruplets(pairs, ratings, None, high_is_near=False)
    assert (ratings[rows[:, 0]] < ratings[rows[:, 2]]).all()
    np.testing.assert_array_equal(rows[:, [0, 2]], origin)
    counts = np.bincount(rows[:, 0], minlength=500) + np.bincount(rows[:, 2], minlength=500)
    assert counts.min() > 0
    assert counts.max() <= 80


@each("blank", ["", "NA", "-99"])
@each("answers", [("1", "2"), ("left", "right"), ("blue", "red")])
def test_rows_without_an_answer_are_named_together_or_dropped(tmp_path, blank, answers):
    """Before, one row was named at a time, and -99 made the others unclear ("Thirty stumbling blocks", 10)."""
    first, second = answers
    third = "red" if first == "blue" else first
    rows = [f"red,blue,green,{first},p1", f"pink,green,red,{second},p2", f"blue,red,pink,{third},p2"]
    gone = [f"red,pink,blue,{blank},p1", f"pink,blue,red,{blank},p2", f"green,blue,red,{blank},p2"]
    head = "anchor,left,right,response,annotator"
    path, whole = tmp_path / "a.csv", tmp_path / "whole.csv"
    whole.write_text("\n".join([head, *rows]))
    path.write_text("\n".join([head, rows[0], *gone[:2], *rows[1:], gone[2]]))
    with pytest.raises(ValueError, match=r"3 rows of 6 without an answer .*\(row 1, 2, 5\); type missing='drop'"):
        nk.read_comparisons(path)
    found = nk.read_comparisons(path, missing="drop")
    np.testing.assert_array_equal(found.indices, nk.read_comparisons(whole).indices)
    assert "3 rows without an answer (p1 1, p2 2)" in str(found.source)
    (tmp_path / "none.csv").write_text("\n".join([head, *gone]))
    with pytest.raises(ValueError, match="3 rows of 3 without an answer"):
        nk.read_comparisons(tmp_path / "none.csv", missing="drop")
