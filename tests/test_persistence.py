import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nearkin import ProductQuantizer
from nearkin._storage import digest
from tests.covering import each


@pytest.fixture
def pq(rng):
    X = rng.normal(size=(50, 8)).astype(np.float32)
    seed = np.random.default_rng(0)
    return ProductQuantizer(4, 16, init="identity", n_lists=4, max_iter=2, random_state=seed).fit(X)


def test_another_class_is_refused(tmp_path, pq):
    pq.save(tmp_path / "pq")

    class Other(ProductQuantizer):
        pass

    class Thing(ProductQuantizer):
        KIND = "thing"

    with pytest.raises(ValueError, match="holds the kind 'product quantizer'; 'thing' is needed"):
        Thing.load(tmp_path / "pq")
    with pytest.raises(ValueError, match="holds a ProductQuantizer, not a Other"):
        Other.load(tmp_path / "pq")


@each(
    ("name", "value", "match"),
    [
        *(("n_centroids", value, "n_centroids is") for value in ({}, [16], "16", 16.5)),
        *((name, 8, "codebooks_ is") for name in ("n_subspaces", "n_centroids", "n_lists")),
    ],
)
def test_a_parameter_of_another_type_or_that_the_arrays_do_not_have_is_damage(tmp_path, pq, name, value, match):
    """Before, an index of such a folder loaded, and `add` ended in a TypeError (campaign, seed 2311, case 18562) or an
    AssertionError (seed 5151, case 23691)."""
    before = getattr(pq, name)
    setattr(pq, name, value)
    pq.save(tmp_path / "pq")
    setattr(pq, name, before)
    with pytest.raises(ValueError, match=match):
        ProductQuantizer.load(tmp_path / "pq")


def test_nothing_is_written_before_fit(tmp_path):
    with pytest.raises(NotFittedError):
        ProductQuantizer().save(tmp_path / "pq")
    assert not (tmp_path / "pq").exists()


def test_digests_are_equal_where_contents_are() -> None:
    """Of text whatever the width of its type, of pieces in their order."""
    X = np.arange(12.0).reshape(4, 3)
    parts = [X, X.astype(np.float32), X.T, X[:3], "X", b"X", None, iter([X[:2], X[2:]])]
    assert len({digest(part) for part in parts}) == len(parts)
    assert digest(np.array(["a", "b"])) == digest(np.array(["a", "b"], "U9")) == digest(np.array(["a", "b"], object))
    assert digest(iter([X[:2], X[2:]]), "a") == digest(iter([X[:2], X[2:]]), "a") != digest(X, "a")
