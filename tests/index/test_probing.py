import numpy as np
import pytest

from nearkin import Index, ProductQuantizer
from nearkin.index.probing import probing_curve

X, Q = (np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32) for seed, n in ((0, 500), (1, 40)))


def test_the_curve_is_what_search_finds_at_each_number_and_ends_at_that_of_all_lists() -> None:
    index = Index.build(
        X, ProductQuantizer(4, 32, n_lists=10, max_iter=2, random_state=0), keep_vectors=True, n_probe=3
    )
    truth = Index.build(X).search(Q, 10)[1]
    curve = probing_curve(index, Q, truth, oversample=50)
    assert [point.n_probe for point in curve] == [1, 2, 4, 8, 10]
    assert [point.recall for point in curve] == sorted(point.recall for point in curve)
    assert curve[-1].recall == 1  # all rows are looked at, and ranked by the exact vectors
    assert index.n_probe == 3
    (point,) = probing_curve(index, Q, truth, 5, n_probes=[3])
    found = index.search(Q, 5)[1]
    assert point.recall == np.mean([len(np.intersect1d(a, b[:5])) / 5 for a, b in zip(found, truth, strict=True)])


def test_what_cannot_be_probed() -> None:
    with pytest.raises(ValueError, match="this index has none; make it with n_lists > 0"):
        probing_curve(Index.build(X), Q, Q)
    index = Index.build(X, ProductQuantizer(4, 32, n_lists=5, max_iter=1, random_state=0), n_probe=2)
    with pytest.raises(ValueError, match="n_probe is 6"):
        probing_curve(index, Q, np.zeros((40, 10), np.int64), n_probes=[1, 6])
    assert index.n_probe == 2


def test_sixteen_lists_are_probed_or_a_sixteenth_of_many() -> None:
    for lists, probed in ((4, 4), (20, 16), (288, 18)):
        quantizer = ProductQuantizer(1, 4, n_lists=lists, init="identity", max_iter=1, random_state=0).fit(X)
        assert Index.empty(8, quantizer).n_probe == probed, lists
