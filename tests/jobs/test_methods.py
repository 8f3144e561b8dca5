"""Names of methods."""

import pytest

from nearkin.jobs.compress import choose_metric, find_method


def test_the_names_of_the_field() -> None:
    names = ("pq", "opq", "rq", "lsq", "sq8")
    assert [find_method(name) for name in names] == ["none", "product", "residual", "residual", "int8"]


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="method is 'oqp'; it must be one of 'best', 'pq', 'opq', 'rq', 'lsq', 'sq8'"):
        find_method("oqp")
    with pytest.raises(ValueError, match="metric for itq is 'l2'; it must be one of 'hamming'"):
        choose_metric("itq", "l2")
