"""Semantic ids: unique, stable, near rows alike, against exhaustive search and a plain model."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import nearkin as nk
from tests.refusals import each_refused


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(600, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def made(rows: np.ndarray) -> nk.SemanticIds:
    return nk.SemanticIds(3, 16, random_state=0).fit(rows)


def unique(ids: np.ndarray) -> bool:
    return len(np.unique(ids, axis=0)) == len(ids)


def test_codebooks_are_fitted_to_ids_of_single_rows(made: nk.SemanticIds, rows: np.ndarray) -> None:
    """Sharing .14 by the codebooks of the learner, .087 by these; error 1.22 and 1.09."""
    before = deepcopy(made)
    learner = nk.quantization.ResidualQuantizer(3, n_centroids=16, random_state=0).fit(rows)
    before.codebooks_ = np.ascontiguousarray(learner.codebooks_[0, :, :, :8])
    before._give_ids(rows)
    assert made.distortion_[1] < before.distortion_[1]
    assert made.shared_ < before.shared_


def test_far_rows_leave_the_ids_of_the_others_alone(made: nk.SemanticIds, rows: np.ndarray) -> None:
    """One of 2,500 rows of SIFT 10^6 times as long: rows that ids decode to kept .033 of the neighbours for .439."""
    others = np.setdiff1d(np.arange(len(rows)), [5, 300])
    far = rows.copy()
    far[[5, 300]] *= np.float32(1e6)
    with pytest.warns(UserWarning, match="vector 5 and 1 more lie"):
        fitted = nk.SemanticIds(3, 16, random_state=0).fit(far)
    errors = (np.square(rows - one.decode(one.ids_))[others].sum(1).mean() for one in (fitted, made))
    assert next(errors) < 1.2 * next(errors)
    assert unique(fitted.ids_)


def test_every_row_has_an_id_of_its_own_for_little_distortion(made: nk.SemanticIds, rows: np.ndarray) -> None:
    assert unique(made.ids_)
    assert made.shared_ > 0
    before, after = made.distortion_
    assert before <= after < 1.3 * before
    assert np.isclose(((rows - made.decode(made.ids_)) ** 2).sum(1).mean(), after)
    np.testing.assert_array_equal(made.item_of(made.ids_), np.arange(600))


def test_last_codes_are_shared_out_at_the_least_error(rows: np.ndarray) -> None:
    """Among rows of one first code, no other way to give each a last code of its own has a smaller error."""
    X = rows[:24]
    made = nk.SemanticIds(2, 8, random_state=0).fit(X)
    made.codebooks_[1] = np.random.default_rng(1).normal(size=(8, 8)) * np.geomspace(0.1, 3, 8)[:, None]
    made._give_ids(X)
    for first in np.unique(made.ids_[:, 0]).tolist():
        members = np.flatnonzero(made.ids_[:, 0] == first)
        errors = np.square(X[members, None] - made.decode([[first, last] for last in range(8)])).sum(axis=2)
        found = errors[np.arange(len(members)), made.ids_[members, 1]].sum()
        assert found == pytest.approx(errors[linear_sum_assignment(errors)].sum(), rel=1e-5)


def test_the_nearest_ids_are_those_of_an_exhaustive_search(rows: np.ndarray) -> None:
    made = nk.SemanticIds(2, 8, random_state=0).fit(rows[:60])
    every = np.array(list(product(range(8), repeat=2)))
    errors = ((rows[:60, None] - made.decode(every)[None]) ** 2).sum(2)
    found = ((rows[:60] - made.decode(made.transform(rows[:60]))) ** 2).sum(1)
    np.testing.assert_allclose(found, errors.min(1), rtol=1e-4)


def test_new_rows_get_free_ids_and_old_ones_stay_after_saving_too(rows: np.ndarray, tmp_path: Path) -> None:
    made = nk.SemanticIds(2, 32, random_state=0).fit(rows[:500])
    made.save(tmp_path / "ids")
    again, old = nk.SemanticIds.load(tmp_path / "ids"), made.ids_.copy()
    np.testing.assert_array_equal(again.transform(rows[:9]), made.transform(rows[:9]))
    new = made.assign(rows[500:])
    np.testing.assert_array_equal(again.assign(rows[500:]), new)
    np.testing.assert_array_equal(made.ids_, np.concatenate([old, new]))
    assert unique(made.ids_)


def test_ids_of_removed_rows_are_given_again(rows: np.ndarray) -> None:
    made = nk.SemanticIds(2, 16, random_state=0).fit(rows[:256])  # every id is taken
    with pytest.raises(ValueError, match="X has 1 vector, and 0 ids are free"):
        made.assign(rows[:1])
    gone = made.ids_[[3]]
    made.remove([3])
    np.testing.assert_array_equal(made.item_of(gone), [-1])
    np.testing.assert_array_equal(made.assign(rows[7:8]), gone)
    np.testing.assert_array_equal(made.item_of(gone), [256])
    with pytest.raises(IndexError, match="that have an id"):
        made.remove([3])
    for wrong in ([1.5], np.arange(257) == 5):  # a mask removed the rows 0 and 1
        with pytest.raises(ValueError, match=r"rows are .* they must be integers"):
            made.remove(wrong)


def test_equal_rows_get_different_ids_alike_each_time(rows: np.ndarray) -> None:
    X = np.concatenate([rows[:60], np.repeat(rows[:1], 140, axis=0)])
    first, second = (nk.SemanticIds(3, 16, random_state=0).fit(X).ids_ for _ in range(2))
    assert unique(first)
    np.testing.assert_array_equal(first, second)


def test_heavier_rows_keep_their_nearest_ids(rows: np.ndarray) -> None:
    heavy = np.zeros(600, bool)
    heavy[::10] = True
    made = nk.SemanticIds(2, 32, random_state=0).fit(rows, weights=np.where(heavy, 1000.0, 1.0))
    moved = (made.ids_ != made.transform(rows)).any(1)
    assert moved[heavy].mean() < 0.5 * moved[~heavy].mean()


def test_tokens(made: nk.SemanticIds) -> None:
    assert made.tokens([[12, 0, 3]]) == ["<a_12><b_0><c_3>"]
    assert [made.vocabulary()[number] for number in (12, 16, 35)] == ["<a_12>", "<b_0>", "<c_3>"]


def test_a_wrong_token_of_a_beam_is_that_id_alone(made: nk.SemanticIds) -> None:
    """A language model writes what it likes; the other ids of the beam keep their rows."""
    first, second = made.tokens(made.ids_[:2])
    a, b, c = first.replace("><", "> <").split()
    wrong = ["", a, a + b, first + c, b + a + c, a + b + b, a + b + "<c_99>", a + b + "<c_-1>", "<s>" + first, "no ids"]
    texts = np.array([first, *wrong, second])
    expected = [0, *[-1] * len(wrong), 1]
    assert made.item_of(made.from_tokens(texts)).tolist() == expected
    assert not made.trie().allowed([[99], [-1]]).any()
    with pytest.raises(ValueError, match=r"ids are float64 .* they must be integers"):
        made.trie().allowed([[0.5]])
    with pytest.raises(ValueError, match="ids has rows of different lengths; give every row as many entries"):
        made.item_of([[1, 2], [1, 2, 3]])
    for none in ([], np.empty((0, 3), int)):
        assert made.item_of(none).shape == (0,)
        assert made.from_tokens([]).shape == (0, 3)


def test_removed_rows_are_gaps_everywhere(made: nk.SemanticIds) -> None:
    made = deepcopy(made)
    made.remove([0, 7])
    expected = np.where(np.isin(np.arange(600), [0, 7]), -1, np.arange(600))
    np.testing.assert_array_equal(made.item_of(made.ids_), expected)
    np.testing.assert_array_equal(made.from_tokens(made.tokens(made.ids_)), made.ids_)
    for wrong in (made.ids_[:1], [[-1, 0, 0]], [[0, 0, 16]]):
        with pytest.raises(ValueError, match=r"row 0 of ids is \[.*codes are 0 to 15"):
            made.decode(wrong)
    with pytest.raises(ValueError, match=r"row 1 of ids is \[-1, 0, 0\]"):
        made.tokens([[0, 0, 0], [-1, 0, 0]])


def test_bad_input(rows: np.ndarray, made: nk.SemanticIds) -> None:
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: nk.SemanticIds(2, 16).fit(rows), "ids need 16 to 16\\^2"),
        (lambda: nk.SemanticIds().fit(rows[:5]), "X has 5 vectors; ids need 256 to"),
        (lambda: made.assign(rows * np.nan), "NaN"),
        (lambda: nk.SemanticIds(3, 16).fit(rows * np.nan), "NaN"),
    ]
    functions = made.item_of, made.decode, made.tokens
    wrong = [[0, 0]], [[0.5, 0, 0]], [["a", "b", "c"]]
    cases += [(partial(function, ids), r"integers \(m, 3\)") for function, ids in product(functions, wrong)]
    each_refused((call, ValueError, match) for call, match in cases)
    for texts in ("<a_1><b_1><c_1>", ["<a_1><b_1><c_1>", None], [b"<a_1>"]):
        with pytest.raises(TypeError, match="a text for each id"):
            made.from_tokens(texts)  # pyright: ignore[reportArgumentType]


def test_a_folder_of_other_values_is_damage(made: nk.SemanticIds, tmp_path: Path) -> None:
    """Before, it loaded, and `item_of` ended in an AttributeError (campaign, seed 4141, cases 17395 and 24379)."""
    changes = {"ids_": (None, np.full((9, 3), 300), np.zeros((9, 2), np.int64)), "levels": (0,)}
    for name, value in ((name, value) for name, values in changes.items() for value in values):
        other = deepcopy(made)
        if value is None:
            delattr(other, name)
        else:
            setattr(other, name, value)
        other.save(tmp_path / "ids", overwrite=True)
        with pytest.raises(ValueError, match=r"ids_|levels is 0"):
            nk.SemanticIds.load(tmp_path / "ids")


def test_a_trie_leads_to_the_ids_of_rows_and_to_no_others(rows: np.ndarray) -> None:
    made = nk.SemanticIds(3, 8, random_state=0).fit(rows[:100])
    made.remove([3])
    left = {tuple(row) for row in made.ids_.tolist() if row[0] >= 0}
    trie, found = made.trie(), np.empty((1, 0), np.int64)
    for _ in range(3):
        at, codes = np.nonzero(trie.allowed(found))
        found = np.column_stack([found[at], codes])
    assert {tuple(row) for row in found.tolist()} == left
    assert len(left) == 99
    free = next(row for row in product(range(8), repeat=2) if row not in {row[:2] for row in left})
    assert not trie.allowed([free]).any()
    for ids, message in (([[0, 0, 0]], "with l below 3"), ([0], r"shape \(1,\)")):
        with pytest.raises(ValueError, match=message):
            trie.allowed(ids)
