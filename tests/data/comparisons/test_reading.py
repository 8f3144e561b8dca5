"""Reading and making comparisons: every format, every form, every error."""

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import nearkin as nk
from nearkin.data.comparisons import comparisons_from_array, comparisons_from_names
from nearkin.data.comparisons.reading import expand_form, orient
from nearkin.data.comparisons.votes import (
    comparisons_from_vectors,
    count_contradictions,
    distinct_rows,
    flip_answers,
    net_votes,
    number_questions,
    split_comparisons,
)
from nearkin.records import Comparisons, invalid_rows
from tests.covering import each

NAMED = [["Rome", "Milan", "Oslo"], ["Oslo", "Milan", "Rome"], ["Milan", "Rome", "Oslo"]]


def write(path, rows, delimiter=","):
    path.write_text("\n".join(delimiter.join(map(str, row)) for row in rows) + "\n", encoding="utf-8")
    return path


@each(("name", "delimiter"), [("a.csv", ","), ("a.tsv", "\t"), ("b.csv", ";")])
@each("header", [[], [["i", "j", "k"]]])
def test_text_files(tmp_path, name, delimiter, header):
    found = nk.read_comparisons(write(tmp_path / name, header + NAMED, delimiter))
    assert found.objects.tolist() == ["Milan", "Oslo", "Rome"]
    assert found.objects[found.indices].tolist() == NAMED


def test_four_columns_are_quadruplets_and_numbers_stay_numbers(tmp_path):
    found = nk.read_comparisons(write(tmp_path / "a.csv", [[10, 20, 30, 40], [40, 20, 10, 30]]))
    assert found.n_columns == 4
    assert found.objects.tolist() == [10, 20, 30, 40]
    assert found.objects[found.indices].tolist() == [[10, 20, 30, 40], [40, 20, 10, 30]]


def test_named_columns_in_any_order(tmp_path):
    rows = [
        ["votes", "anchor", "a", "b", "worker", "response"],
        [3, "x", "y", "z", "w1", 1],
        [1, "x", "y", "z", "w2", -1],
    ]
    found = nk.read_comparisons(write(tmp_path / "a.csv", rows))
    assert found.objects[found.indices].tolist() == [["x", "y", "z"], ["x", "z", "y"]]
    assert found.weights.tolist() == [3, 1]
    assert found.annotators.tolist() == ["w1", "w2"]


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    columns = dict(zip("ijk", map(list, zip(*NAMED, strict=True)), strict=True))
    pyarrow.parquet.write_table(pyarrow.table({**columns, "weight": [1.0, 2.0, 3.0]}), path)
    found = nk.read_comparisons(path)
    assert found.objects[found.indices].tolist() == NAMED
    assert found.weights.tolist() == [1, 2, 3]


def test_npz_with_and_without_names(tmp_path):
    rows = np.array([[0, 1, 2], [5, 1, 0]])
    np.savez(tmp_path / "a.npz", triplets=rows)
    found = nk.read_comparisons(tmp_path / "a.npz")
    assert found.objects.tolist() == [0, 1, 2, 5]
    np.savez(tmp_path / "b.npz", triplets=rows, response=[1, -1])  # was left aside
    with pytest.raises(ValueError, match=r"'response', an entry a comparison, .* call it one of weights, responses"):
        nk.read_comparisons(tmp_path / "b.npz")
    np.savez(tmp_path / "b.npz", triplets=rows, objects=np.array(list("abcdefg")), weights=[1, 2])
    found = nk.read_comparisons(tmp_path / "b.npz")
    assert found.n_objects == 7
    assert found.objects[found.indices].tolist() == [["a", "b", "c"], ["f", "b", "a"]]


def test_rows_that_repeat_an_index_are_named_or_dropped(tmp_path):
    path = write(tmp_path / "a.csv", [[0, 1, 2], [3, 3, 1], [1, 2, 0], [2, 0, 0]])
    with pytest.raises(ValueError, match=r"2 of 4 comparisons repeat an index.*rows 1 \[3, 3, 1\], 3 \[2, 0, 0\]"):
        nk.read_comparisons(path)
    found = nk.read_comparisons(path, on_invalid="drop")
    assert (len(found), found.n_dropped) == (2, 2)


def test_invalid_quadruplets():
    rows = np.array([[0, 0, 1, 2], [0, 1, 2, 2], [0, 1, 0, 1], [0, 1, 1, 0], [0, 1, 1, 2]], np.uint32)
    assert invalid_rows(rows).tolist() == [True, True, True, True, False]


@each(
    ("lines", "text"),
    [
        ([], "is an empty file"),
        ([["i", "j", "k"]], "a header and no rows"),
        ([[1, 2]], r"has 2 object columns \(0, 1\); 3 mean"),
        ([[1, 2, 3], [1, 2]], "line 2: 2 cells where other lines have 3"),
        ([[1, 2, 3], [1, "", 3]], r"1 row of 2 without an answer or an object \(row 1\); type missing='drop'"),
        ([[1, 2, 3], [1, "nan", 3]], r"1 row of 2 without an answer or an object \(row 1\)"),
        ([["i", "j", "k", "response"], [1, 2, 3, 0]], "column 'response' holds '0'. A response must be \\+1"),
        ([["i", "j", "k", "weight"], [1, 2, 3, 0]], "weights row 0 is 0.0; weights must be positive"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, lines, text):
    with pytest.raises(ValueError, match=text):
        nk.read_comparisons(write(tmp_path / "a.csv", lines) if lines else _empty(tmp_path / "a.csv"))


def test_one_role_that_is_not_named_is_the_column_that_is_left(tmp_path):
    path = write(tmp_path / "a.csv", [["p", "q", "r"], *NAMED])
    found = nk.read_comparisons(path, header=True, near="q", far="p")
    assert found.objects[found.indices].tolist() == [[c, b, a] for a, b, c in NAMED]
    with pytest.raises(ValueError, match=r"has 2 object columns \(p, r\).* Name their roles: anchor="):
        nk.read_comparisons(path, header=True, near="q")


def test_columns_of_other_things_are_no_objects(tmp_path):
    rows = [[*NAMED[n % 3][:2], n % 5] for n in range(12)]
    with pytest.raises(ValueError, match="column '2' shares no value with 0, 1; are these comparisons"):
        nk.read_comparisons(write(tmp_path / "a.csv", rows), header=False)
    for held, first in {"row numbers": "{}", "times": "2019-03-{:02}"}.items():  # of matches between two
        rows = [[first.format(n + 1), *NAMED[n % 3][:2]] for n in range(12)]
        with pytest.raises(ValueError, match=f"column '0' would be objects by its place, but seems to hold {held}"):
            nk.read_comparisons(write(tmp_path / "a.csv", rows), header=False)


def _empty(path):
    path.write_text("")
    return path


def test_wrong_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        nk.read_comparisons(tmp_path / "a.csv")
    (tmp_path / "a.xls").write_text("x")
    with pytest.raises(ValueError, match=r"ends in '.xls'; it must be one of .csv"):
        nk.read_comparisons(tmp_path / "a.xls")
    with pytest.raises(ValueError, match=r"a.npz is an empty file"):
        nk.read_comparisons(_empty(tmp_path / "a.npz"))
    np.savez(tmp_path / "b.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="must hold 'triplets'"):
        nk.read_comparisons(tmp_path / "b.npz")


@each(
    ("rows", "error", "text"),
    [
        ([], ValueError, r"shape \(0,\); it must be \(m, 3\)"),
        (np.empty((0, 3), int), ValueError, "is empty; at least one row"),
        ([[0, 1]], ValueError, r"shape \(1, 2\)"),
        ([[0, 1, -2]], ValueError, r"row 0 is \[0, 1, -2\]; indices must be in"),
        ([[0, 1, 2], [0.5, 1, 2]], ValueError, "row 1 is .*NaN or a fraction"),
        ([[0, 1, np.nan]], ValueError, "NaN or a fraction"),
        ([["a", "b", "c"]], TypeError, "comparisons_from_names"),
        ([[1, 1, 1]], ValueError, "repeat an index"),
        ([[0, 1, 2**32 - 1]], ValueError, "index 4,294,967,295; an embedding has a row for each"),
        (sp.csr_array(np.eye(3)), TypeError, r"is sparse \(csr_array\).*toarray"),
    ],
)
def test_arrays_that_are_no_comparisons(rows, error, text):
    with pytest.raises(error, match=text):
        comparisons_from_array(rows)


def test_integers_of_a_table_without_names():
    frame = pd.DataFrame([[0, 1, 2], [2, 1, 0]], dtype=object)
    assert comparisons_from_array(frame).indices.tolist() == [[0, 1, 2], [2, 1, 0]]
    turned = comparisons_from_array(frame, responses=np.array([1, -1], dtype=object))
    assert turned.indices.tolist() == [[0, 1, 2], [2, 0, 1]]
    with pytest.raises(TypeError, match="integer indices"):
        comparisons_from_array(frame.replace(1, "1"))


def test_record_checks_itself():
    with pytest.raises(ValueError, match=r"row 0 is \[0, 1, 7\]; there are only 3 objects"):
        Comparisons(np.array([[0, 1, 7]]), np.arange(3))
    with pytest.raises(ValueError, match=r"annotators has shape \(2,\); it must be \(1,\)"):
        Comparisons(np.array([[0, 1, 2]]), np.arange(3), annotators=np.arange(2))
    with pytest.raises(ValueError, match="weights must be positive and finite"):
        Comparisons(np.array([[0, 1, 2]]), np.arange(3), weights=np.array([np.inf]))


def test_names_not_among_the_objects():
    with pytest.raises(ValueError, match="the first is 'Oslo'"):
        comparisons_from_names(NAMED, objects=["Rome", "Milan"])
    assert comparisons_from_names(NAMED, objects=["Rome", "Milan", "Oslo", "Bonn"]).n_objects == 4


def test_forms_agree_with_distances():
    """Three points on a line, 0 - 1 --- 4: the middle one is most central, the last one is odd."""
    x = np.array([0.0, 1.0, 4.0])
    for form, row in (("most-central", [1, 0, 2]), ("odd-one-out", [2, 0, 1])):
        rows, source = expand_form(np.array([row]), form)
        assert source.tolist() == [0, 0]
        for i, j, k in rows:
            assert abs(x[i] - x[j]) < abs(x[i] - x[k]), (form, i, j, k)
    found = comparisons_from_array([[2, 0, 1]], form="odd-one-out", weights=[4])
    assert found.weights.tolist() == [4, 4]
    with pytest.raises(ValueError, match="needs rows of three"):
        comparisons_from_array([[0, 1, 2, 3]], form="odd-one-out")


def test_responses_turn_rows_round():
    assert orient(np.array([[0, 1, 2], [0, 1, 2]]), np.array([True, False])).tolist() == [[0, 1, 2], [0, 2, 1]]
    assert orient(np.array([[0, 1, 2, 3]]), np.array([-1])).tolist() == [[2, 3, 0, 1]]


def test_votes_and_contradictions():
    rows = [[0, 1, 2], [0, 1, 2], [0, 2, 1], [1, 2, 3], [2, 3, 1]]
    found = comparisons_from_array(rows)
    assert count_contradictions(found) == 1
    net, total = net_votes(found)
    assert sorted(zip(np.abs(net), total, strict=True)) == [(1, 1), (1, 1), (1, 3)]
    quadruplets = comparisons_from_array([[0, 1, 2, 3], [3, 2, 1, 0]])  # the same two pairs, the other way round
    assert count_contradictions(quadruplets) == 1


@each("by", ["rows", "objects", "annotators"])
def test_split(by, rng):
    answers = comparisons_from_vectors(rng.normal(size=(40, 2)), 500, random_state=1)
    answers = Comparisons(answers.indices, answers.objects, annotators=np.arange(500) % 10)
    train, test = split_comparisons(answers, 0.2, by=by, random_state=2)
    assert len(train) + len(test) == 500
    if by == "rows":
        assert len(test) == 100
    elif by == "annotators":
        assert not set(train.annotators) & set(test.annotators)
    else:
        missing = set(range(40)) - set(train.indices.ravel().tolist())
        assert len(missing) == 8
        assert all(missing & set(row) for row in test.indices.tolist())


def test_questions_do_not_leak_through_a_split(rng):
    """By rows, answers of one question stood on both sides: .220 instead of .360 on raters who repeat themselves."""
    points = rng.normal(size=(12, 2))
    once = comparisons_from_vectors(points, 60, random_state=1)
    rows = np.concatenate([once.indices, once.indices[:, [0, 2, 1]], once.indices])
    answers = comparisons_from_array(rows, objects=np.arange(12))
    train, test = split_comparisons(answers, 0.2, by="questions", random_state=2)
    whole = Comparisons(np.concatenate([train.indices, test.indices]), answers.objects)
    number = number_questions(whole)
    assert not set(number[: len(train)]) & set(number[len(train) :])
    assert len(train) + len(test) == len(answers)


def test_without_repeats_questions_are_rows():
    answers = comparisons_from_array([[0, 1, 2], [1, 2, 0], [2, 0, 1], [3, 0, 1], [0, 1, 3]])
    assert number_questions(answers).tolist() == [0, 1, 2, 3, 4]
    for by_rows, by_questions in zip(
        *(split_comparisons(answers, 0.4, by=by, random_state=5) for by in ("rows", "questions")), strict=True
    ):
        np.testing.assert_array_equal(by_rows.indices, by_questions.indices)


def test_a_question_is_two_pairs_in_any_order():
    answers = comparisons_from_array([[0, 1, 0, 2], [2, 0, 1, 0], [0, 1, 1, 2], [1, 0, 2, 0]])
    assert number_questions(answers).tolist() == [0, 0, 1, 0]


def test_split_errors():
    answers = comparisons_from_array([[0, 1, 2], [1, 2, 0]])
    with pytest.raises(ValueError, match="name none"):
        split_comparisons(answers, by="annotators")
    with pytest.raises(ValueError, match="leaves 2 to train on and 0 to test"):
        split_comparisons(answers, 0.0)


@each("quadruplets", [False, True])
def test_from_vectors_is_true_but_for_the_noise(quadruplets, rng):
    X = rng.normal(size=(20, 3))
    for noise in (0.0, 0.25):
        made = comparisons_from_vectors(X, 1000, quadruplets=quadruplets, noise=noise, random_state=4)
        assert nk.metrics.triplet_error(X, made) == pytest.approx(noise)
    assert len({tuple(row) for row in made.indices.tolist()}) > 500


def test_distinct_rows_are_uniform(rng):
    rows = distinct_rows(4, 24_000, 3, rng)
    _, counts = np.unique(rows, axis=0, return_counts=True)
    assert len(counts) == 24  # 4 x 3 x 2 ordered rows
    assert abs(counts - 1000).max() < 160  # five standard deviations


def test_flip_answers_flips_exactly_the_share(rng):
    answers = comparisons_from_vectors(rng.normal(size=(9, 2)), 50, random_state=1)
    assert (flip_answers(answers, 0.3, random_state=2).indices != answers.indices).any(axis=1).sum() == 15


def test_a_choice_among_the_objects_of_its_row_is_no_fourth_object() -> None:
    """The advice on_invalid="drop" left half of the rows, as comparisons of pairs that nobody made."""
    rows = [["abc"[n % 3], "de"[n % 2], "fg"[n % 2], ("de", "fg")[n % 3 > 0][n % 2]] for n in range(12)]
    table = pd.DataFrame(rows, columns=["ref", "one", "other", "nearer"])
    for frame, name in ((table, "nearer"), (table.set_axis(["a1", "a2", "a3", "a4"], axis=1), "a4")):
        with pytest.raises(ValueError, match=f"'{name}' repeats an object of its row: is it the answer"):
            nk.read_comparisons(frame, on_invalid="drop")
    found = nk.read_comparisons(table, response="nearer")
    assert found.objects[found.indices[:, 1]].tolist() == table["nearer"].tolist()
