"""Old spellings work, say what to type, and are refused beside the new one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

import nearkin as nk
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


def test_the_old_name_of_join_processes_works() -> None:
    with pytest.warns(DeprecationWarning, match=r"type nearkin.pipeline.join_processes\(\)") as caught:
        processes = nk.pipeline.joined()
    with processes as group:
        assert group.size == 1
    assert caught[0].filename == __file__


def test_the_old_name_of_the_relevant_pairs_works() -> None:
    rng = np.random.default_rng(0)
    left, right, pairs = rng.normal(size=(5, 3)), rng.normal(size=(6, 3)), sp.csr_matrix(np.eye(5, 6))
    with pytest.warns(DeprecationWarning, match="type relevant="):
        old = nk.metrics.ranking_metrics(left, right, held_out=pairs, k=2)
    assert old == nk.metrics.ranking_metrics(left, right, pairs, k=2)
