"""Old spellings work, say what to type, and are refused beside the new one."""

import pytest
from sklearn.base import BaseEstimator, clone

from nearkin._deprecation import accepts_old


class Estimator(BaseEstimator):
    @accepts_old(coarse="n_lists")
    def __init__(self, n_lists: int = 0) -> None:
        self.n_lists = n_lists


def test_old_keyword_is_taken_as_the_new_one_with_a_warning_that_says_what_to_type() -> None:
    with pytest.warns(DeprecationWarning, match=r"coarse= is deprecated .* type n_lists=") as caught:
        assert Estimator(coarse=3).n_lists == 3
    assert caught[0].filename == __file__


def test_both_spellings_are_refused() -> None:
    with pytest.raises(TypeError, match="give n_lists= only"):
        Estimator(coarse=3, n_lists=4)


def test_scikit_learn_sees_the_new_names() -> None:
    assert clone(Estimator(n_lists=5)).get_params() == {"n_lists": 5}
