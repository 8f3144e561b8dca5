"""Method names to unfitted quantizers of the asked size."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs.methods import CodeSize, choose_metric, find_method, methods, subspaces
from nearkin.quantization.candidates import NAMES
from tests.covering import each

FIXED = {"int4": 8, "int6": 12, "int8": 16, "float16": 32}  # bytes of 16 columns: their size follows from d


@each("name", methods())
def test_every_method_has_the_size_that_was_asked_for(name: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(300, 16)).astype(np.float32)
    asked = 8 + name.endswith("-norms") if name in NAMES else 2  # a product residual code has several parts
    quantizer = find_method(name).make(CodeSize(None if name in FIXED else asked, n_centroids=16), 0)
    metric = choose_metric(find_method(name), None)
    index = nk.Index.build(X, quantizer, metric=metric)
    assert index.bytes_per_vector == FIXED.get(name, asked)
    assert index.quantizer.encode(X).shape[0] == 300


def test_the_default_is_16_bytes() -> None:
    assert find_method("procrustes").make(CodeSize(), 0).n_subspaces == 16
    assert find_method("itq").make(CodeSize(), 0).n_bits == 128


def test_bits_and_bytes_name_the_same_size() -> None:
    assert find_method("procrustes").make(CodeSize(8), 0).n_subspaces == 8
    assert find_method("itq").make(CodeSize(n_bytes=8), 0).n_bits == 64


@each(("n_bytes", "n_centroids", "expected"), [(8, 256, 8), (8, 16, 16), (3, 64, 4), (4, 65536, 2)])
def test_subspaces_fill_the_bytes(n_bytes: int, n_centroids: int, expected: int) -> None:
    assert subspaces(n_bytes, n_centroids) == expected


@each(
    ("name", "size", "text"),
    [
        ("none", CodeSize(n_bytes=4, n_centroids=64), "give a multiple of 3 bytes"),
        ("itq", CodeSize(n_lists=4), "leave lists out"),
        ("axes", CodeSize(n_lists=4), "leave lists out"),
        ("product-residual", CodeSize(5), "bytes is 5; .* give 6 bytes"),
        ("product-residual-norms", CodeSize(6), "bytes is 6; .* give 7 bytes"),
        ("residual-norms", CodeSize(1), "bytes is 1"),
        ("residual-norms", CodeSize(4, n_centroids=64), "centroids is 64; .* take --method residual"),
    ],
)
def test_sizes_that_cannot_be(name: str, size: CodeSize, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        find_method(name).make(size, 0)


def test_the_names_of_the_field() -> None:
    names = ("pq", "opq", "rq", "lsq", "sq8")
    assert [find_method(name).name for name in names] == ["none", "procrustes", "residual", "residual", "int8"]


def test_unknown_names() -> None:
    with pytest.raises(
        ValueError, match="method is 'oqp'; it must be one of 'pq', 'opq', 'rq', 'lsq', 'sq8', 'product'"
    ):
        find_method("oqp")
    with pytest.raises(ValueError, match="metric for itq is 'l2'; it must be one of 'hamming'"):
        choose_metric(find_method("itq"), "l2")
