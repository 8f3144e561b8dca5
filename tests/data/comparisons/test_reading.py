"""Reading comparisons: each form by the names of its columns, an answer by the name of what it chooses."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nearkin as nk

PLACES = {"cat": 0, "dog": 1, "fox": 4, "owl": 9, "bee": 16, "ant": 25}


def apart(a: str, b: str) -> int:
    return abs(PLACES[a] - PLACES[b])


def shown(n: int = 60, of: int = 3) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [rng.permutation(list(PLACES))[:of].tolist() for _ in range(n)]


def is_true(answers: nk.Comparisons) -> bool:
    """Whether every comparison is true of `PLACES`."""
    names = answers.objects[answers.quadruplets()].tolist()
    return len(names) > 0 and all(apart(i, j) <= apart(l, k) for i, j, l, k in names)  # noqa: E741


TRIPLETS = [(a, *sorted((b, c), key=lambda x: apart(a, x))) for a, b, c in shown()]
FOURS = [sorted(((a, b), (c, d)), key=lambda pair: apart(*pair)) for a, b, c, d in shown(of=4)]
ODD = [max(row, key=lambda x: sum(apart(x, y) for y in row)) for row in shown()]
ANSWERS = pd.DataFrame(shown(), columns=["anchor", "left", "right"])
ANSWERS["choice"] = [near for _, near, _ in TRIPLETS]
THREE = pd.DataFrame(shown(), columns=["image1", "image2", "image3"])
PAIRS = [(a, b, apart(a, b)) for a, b, _ in shown(90)]

FORMS: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
    "anchor, near, far": (pd.DataFrame(TRIPLETS, columns=["Ref", "winner", "loser"]), {}),
    "in another order": (
        pd.DataFrame(TRIPLETS, columns=["p", "q", "r"])[["r", "p", "q"]], {"columns": ["p", "q", "r"]},
    ),
    "i, j, l, k": (pd.DataFrame([sum(pairs, ()) for pairs in FOURS], columns=["i", "j", "l", "k"]), {}),
    "names of answers": (ANSWERS, {}),
    "typed answers": (ANSWERS.rename(columns={"choice": "most_like"}), {"form": "triplet", "response": "most_like"}),
    "columns of answers": (
        ANSWERS.assign(choice=np.where(ANSWERS.choice == ANSWERS.left, "left", "right")),
        {"form": "triplet"},
    ),
    "places of answers": (ANSWERS.assign(choice=np.where(ANSWERS.choice == ANSWERS.left, 1, 2)), {"form": "triplet"}),
    "a value for the first": (
        ANSWERS.assign(choice=np.where(ANSWERS.choice == ANSWERS.left, "yes", "no")),
        {"form": "triplet", "response": "choice=yes"},
    ),
    "odd one by name": (THREE.assign(choice=ODD), {"form": "odd-one-out"}),
    "odd one by place": (
        THREE.assign(choice=[row.index(odd) + 1 for row, odd in zip(shown(), ODD, strict=True)]),
        {"form": "odd-one-out"},
    ),
    "ranking": (
        pd.DataFrame([(a, *sorted(rest, key=lambda x: apart(a, x))) for a, *rest in shown(of=5)])
        .set_axis(["anchor", "rank1", "rank2", "rank3", "rank4"], axis=1),
        {"form": "ranking"},
    ),
    "rated": (
        pd.DataFrame([(a, b, 100 - d) for a, b, d in PAIRS], columns=["object1", "object2", "similarity"]),
        {"form": "rated", "scale": (0, 100)},
    ),
    "rated as distances": (
        pd.DataFrame(PAIRS, columns=["a", "b", "answer"]), {"form": "rated", "response": "answer", "scale": (25, 0)},
    ),
    "distances": (pd.DataFrame(PAIRS, columns=["a", "b", "distance"]), {}),
}  # fmt: skip


def test_every_form_is_true_of_the_places(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for name, (frame, options) in FORMS.items():
        frame.to_csv(tmp_path / "a.csv", index=False)
        for source in (frame, tmp_path / "a.csv"):
            with subtests.test(f"{name} from a {type(source).__name__}"):
                assert is_true(nk.read_comparisons(source, **options))


def test_what_came_from_one_judgement_has_one_number() -> None:
    ranking, options = FORMS["ranking"]
    answers = nk.read_comparisons(ranking, **options)
    assert np.bincount(answers.judgements).tolist() == [6] * len(ranking)
    rated = nk.read_comparisons(FORMS["distances"][0])
    assert rated.judgements is not None
    assert rated.judgements.shape == (len(rated), 2)


def test_what_the_names_do_not_tell_is_refused(subtests: pytest.Subtests) -> None:
    refused: list[tuple[pd.DataFrame, dict[str, Any], str]] = [
        (THREE.assign(choice=ODD), {}, "do not tell how to read a row"),
        (ANSWERS.rename(columns={"choice": "least_similar"}), {}, "do not tell"),
        (ANSWERS.rename(columns={"choice": "farther"}), {"response": "farther"}, "do not tell"),
        (pd.DataFrame(TRIPLETS, columns=["p", "q", "r"]), {}, "type columns="),
        (pd.DataFrame(TRIPLETS, columns=["anchor", "near", "far"]).assign(response=1), {}, "do not tell"),
        (
            FORMS["rated"][0].assign(similarity=[999, *FORMS["rated"][0].similarity[1:]]),
            {},
            r"rated' with scale=\(\d+, 999\)",
        ),
        (FORMS["rated"][0], {"form": "rated"}, r"type the scale, .* scale=\(\d+, \d+\)"),
        (FORMS["rated"][0], {"form": "rated", "scale": (1, 7)}, "outside the scale from 1 to 7"),
        (ANSWERS.assign(choice="none"), {}, "'none' in row 0 .*an answer is the name of a shown object"),
        (ANSWERS.assign(choice=3), {"form": "triplet"}, "an answer is the name of a shown object"),
        (THREE, {"form": "odd-one-out"}, "usual name of response"),
        (THREE, {"form": "triplet", "columns": [*THREE]}, "usual name of response"),
        (pd.DataFrame([list("3211"), list("3122")], columns=ANSWERS.columns), {}, "names of objects and places alike"),
        (THREE, {"form": "triplet", "columns": ["image1", "image2"]}, "do not tell how to read a row as 'triplet'"),
        (THREE, {"form": "best"}, "form is 'best'"),
        (ANSWERS, {"scale": (1, 7)}, "scale is"),
        (FORMS["rated"][0], {"form": "rated", "scale": (1, 4, 7)}, "scale is"),
        (pd.DataFrame({"a": list("xyz"), "b": list("yzx"), "distance": [1, 2, -1]}), {}, "'-1' in row 2"),
        (pd.DataFrame([list("xyzw")], columns=["anchor", "one", "two", "three"]), {"form": "ranking"}, "columns="),
    ]
    for frame, options, why in refused:
        with subtests.test(str(options)), pytest.raises(ValueError, match=why):
            nk.read_comparisons(frame, **options)


def test_answers_told_twice_are_read_from_near_and_far() -> None:
    names = ["head", "winner", "loser", "Left", "Right", "Answer"]
    frame = pd.DataFrame([[0, 2, 1, "x", "y", "y"], [1, 0, 2, "z", "x", "z"]], columns=names)
    assert nk.read_comparisons(frame).indices.tolist() == [[0, 2, 1], [1, 0, 2]]


def test_ranks_are_read_by_their_numbers() -> None:
    names = [f"o{rank:02d}" for rank in range(1, 11)]
    ranked = pd.DataFrame([["o00", *names]], columns=["anchor", *(f"rank{rank}" for rank in range(1, 11))])
    rows = nk.read_comparisons(ranked[sorted(ranked.columns)], form="ranking").indices
    assert len(rows) == 45
    assert (rows[:, 1] < rows[:, 2]).all()


def test_an_answer_is_read_as_its_error_says() -> None:
    answers = ANSWERS.assign(choice=["no", "yes"] * (len(ANSWERS) // 2))[: len(ANSWERS) // 2 * 2]
    with pytest.raises(ValueError, match="type response='choice=no'"):
        nk.read_comparisons(answers)
    assert len(nk.read_comparisons(answers, response="choice=no")) == len(answers)


def test_raters_are_labels_of_any_text() -> None:
    """One person who typed a name among numbered ones made a survey unreadable."""
    raters = ["[1, 2]", "-1", *map(str, range(1, len(ANSWERS) - 1))]
    read = nk.read_comparisons(ANSWERS.assign(rater=raters))
    assert set(np.asarray(read.annotators).astype(str).tolist()) == set(raters)


def test_missing_answers_are_dropped_and_counted_where_it_is_typed() -> None:
    frame = ANSWERS.assign(choice=ANSWERS.choice.where(ANSWERS.index % 6 != 0, None), rater="ann")
    with pytest.raises(ValueError, match="missing ids in 10 cells: '' in row 0"):
        nk.read_comparisons(frame)
    answers = nk.read_comparisons(frame, missing="drop")
    assert (len(answers), is_true(answers)) == (50, True)
    assert "10 rows with a missing cell left out (10 without choice)" in str(answers.source)
    assert set(np.asarray(answers.annotators).tolist()) == {"ann"}


def test_arrays_of_an_archive(tmp_path: Path) -> None:
    rows = np.array([[0, 1, 2], [2, 1, 0]])
    np.savez(tmp_path / "a.npz", triplets=rows, objects=["x", "y", "z"], responses=[True, False], weights=[1.0, 2.0])
    answers = nk.read_comparisons(tmp_path / "a.npz")
    assert answers.objects[answers.indices].tolist() == [["x", "y", "z"], ["z", "x", "y"]]
    assert np.asarray(answers.weights).tolist() == [1, 2]
    np.savez(tmp_path / "b.npz", triplets=rows, votes=[1, 2])
    with pytest.raises(ValueError, match="holds 'votes', an entry a comparison"):
        nk.read_comparisons(tmp_path / "b.npz")


def test_describe_is_one_line(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    assert "3 x 2 float64" in str(nk.data.describe(tmp_path / "X.npy"))
    pd.DataFrame(TRIPLETS, columns=["p", "q", "r"]).to_csv(tmp_path / "a.csv", index=False)
    assert "anchor = q, near = p, far = r" in str(nk.data.describe(f"{tmp_path}/a.csv:q,p,r"))
    ANSWERS.to_csv(tmp_path / "a.csv", index=False)
    line = str(nk.data.describe(tmp_path / "a.csv"))
    parts = "60 comparisons (triplet)", "anchor = anchor", "response = choice", "6 objects"
    assert [part for part in parts if part not in line] + line.splitlines()[1:] == []
    rows = pd.DataFrame({"digit": [7, 1], "p1": [0.5, 1.5], "p2": [1, 2]})
    assert str(nk.data.describe(rows)) == "the DataFrame: 2 rows of 2 numbers in p1 to p2; left aside: digit"
    with pytest.raises(ValueError, match="usual name of right"):
        nk.data.describe(rows, left="digit")
