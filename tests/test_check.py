from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
import torch

import nearkin as nk
from nearkin._check import (
    check_choice,
    check_finite,
    check_integer,
    check_real,
    check_vectors,
    draw_seed,
    numpy_generator,
    torch_generator,
)
from tests.refusals import each_refused

pl = pytest.importorskip("polars", reason="needs polars")


def test_numbers():
    assert check_integer(np.int64(3), "n") == 3
    assert check_real(np.float32(0.5), "x", low=0, high=1) == 0.5
    assert check_choice("a", "name", ["a", "b"]) == "a"


BAD_NUMBERS = [
    (lambda: check_real(-(10**400), "x"), ValueError, r"an integer of 1329 bits; it must be below 2\^63"),
    (lambda: check_integer(2.0, "n"), TypeError, "n is 2.0 of type float; it must be an integer"),
    (lambda: check_integer(True, "n"), TypeError, "it must be an integer"),
    (lambda: check_integer(0, "n", low=1), ValueError, "n is 0; it must be an integer of at least 1"),
    (lambda: check_integer(9, "n", low=1, high=4), ValueError, "at least 1 and at most 4"),
    (lambda: check_real("a", "x"), TypeError, "x is 'a'"),
    (lambda: check_real(float("nan"), "x"), ValueError, "must be finite"),
    (lambda: check_real(0, "x", above=0), ValueError, "greater than 0"),
    (lambda: check_choice("c", "name", ["a", "b"]), ValueError, "name is 'c'; it must be one of 'a', 'b'"),
]


def test_bad_numbers():
    each_refused(BAD_NUMBERS)


def test_vectors_keep_float64_and_turn_the_rest_to_float32():
    for dtype, expected in ((np.float64, np.float64), (np.uint8, np.float32), (np.float16, np.float32)):
        assert check_vectors(np.ones((2, 3), dtype)).dtype == expected
    assert check_vectors(torch.ones(2, 3, requires_grad=True)).dtype == np.float32
    for rows in ([torch.ones(2, requires_grad=True)] * 3, (torch.ones(2, dtype=torch.bfloat16),) * 3):
        np.testing.assert_array_equal(check_vectors(rows), np.ones((3, 2)))
    assert check_vectors(np.asfortranarray(np.ones((3, 2)))).flags.c_contiguous


def test_tables_with_types_of_their_own_are_numbers():
    table = pd.DataFrame(np.eye(3, 2)).convert_dtypes()  # NumPy has objects for them
    for given in (table, table.astype("float[pyarrow]"), pl.DataFrame(np.eye(3, 2))):
        np.testing.assert_array_equal(check_vectors(given), np.eye(3, 2))
    with pytest.raises(ValueError, match="contains NaN or infinity in 1 of 3 rows"):
        check_vectors(table.mask(table == 1).iloc[[0, 2, 2]].reset_index(drop=True))
    with pytest.raises(TypeError, match="X has 1 column without coordinates: 'name'; drop them"):
        check_vectors(table.assign(name="a"))
    with pytest.raises(TypeError, match=r"without coordinates: 'label', 'kind'; .* takes integers too"):
        nk.Index.build(table.astype(float).assign(label=1, kind=pd.Categorical([1, 2, 1])))
    for times in (pd.DataFrame({"a": [1.0], "t": pd.Timestamp(0)}), pl.DataFrame({"a": [1.0], "t": [timedelta(1)]})):
        with pytest.raises(TypeError, match="X has 1 column without coordinates: 't'"):
            check_vectors(times)  # polars makes numbers of them


def test_a_place_without_a_number_is_named():
    for X, text in (
        (np.where(np.eye(4, 3) == 1, np.nan, 1)[1:], r"in 2 of 3 rows, the first is row 0; fill them, or"),
        (np.array([1, np.inf]), r"in 1 of 2 rows, the first is row 1; .* X\[np.isfinite\(X\)\]"),
    ):
        with pytest.raises(ValueError, match=text):
            check_finite(X)


def hidden(*entries):
    return np.ma.masked_array(entries, mask=np.arange(np.size(entries)).reshape(np.shape(entries)) == 1)


def test_masked_entries_are_not_read():
    calls = (
        lambda: check_vectors(hidden([1.0, 2.0])),
        lambda: nk.ProductQuantizer(1).fit(hidden([1.0, 2.0])),
        lambda: nk.Index.build(np.eye(2), ids=hidden(3, 4)),
        lambda: nk.Interactions.from_pairs(hidden(0, 1), [0, 1]),
        lambda: nk.Interactions.from_pairs([0, 1], [0, 1], weights=hidden(1.0, 2.0)),
        lambda: nk.OrdinalEmbedding(2).fit(hidden([0, 1, 2])),
        lambda: nk.metrics.recall(hidden([0, 1]), [[0, 1]]),
        lambda: nk.OgE(1).fit(np.eye(2), hidden(0, 1)),
    )
    each_refused((call, ValueError, "is a masked array with 1 masked entry") for call in calls)


def test_text_among_numbers_is_not_made_text_of():
    with pytest.raises(ValueError, match="dtype object"):
        nk.metrics.recall([[1, "2"]], [[1, 2]])
    with pytest.raises(TypeError, match="not all numbers, or all text"):
        nk.data.comparisons_from_names([("1", 1, "b")])


def test_columns_with_names_are_not_read_by_their_places():
    table = pd.DataFrame([(0, 1, 2), (0, 1, 3)], columns=["anchor", "far", "near"])
    with pytest.raises(TypeError, match=r"pass nk.read_comparisons\(comparisons\)"):
        nk.OrdinalEmbedding(2).fit(table)
    assert nk.read_comparisons(table).indices[0].tolist() == [0, 2, 1]


def test_a_sum_that_overflows_is_not_an_infinity():
    X = np.full((4, 2), 1e308)
    assert check_vectors(X) is X or (check_vectors(X) == X).all()


def test_seeds():
    assert draw_seed(numpy_generator(5)) == draw_seed(numpy_generator(5))
    shared = np.random.default_rng(1)
    assert numpy_generator(shared) is shared
    assert numpy_generator(np.random.RandomState(3)).random() == numpy_generator(np.random.RandomState(3)).random()
    generator = torch_generator(3)
    assert torch_generator(generator) is generator
    assert torch.equal(torch.rand(2, generator=torch_generator(4)), torch.rand(2, generator=torch_generator(4)))
    with pytest.raises(TypeError, match="random_state is 'seed'"):
        numpy_generator("seed")
