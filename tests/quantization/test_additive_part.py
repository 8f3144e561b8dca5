"""One part of the rows while its codebooks are learned."""

import numpy as np
import pytest

from nearkin.quantization.additive import decode
from nearkin.quantization.additive_part import SHARE, Part, lengths


@pytest.fixture
def part(rng: np.random.Generator) -> tuple[np.ndarray, Part]:
    Z = (rng.standard_normal((600, 6)) * [4, 3, 2, 1.5, 1, 0.6] * rng.gamma(2.0, 0.5, (600, 1))).astype(np.float32)
    Z -= Z.mean(axis=0)
    return Z, Part.start(Z, np.diag([1.0, 1, 1, 1, 1, 1e-9]), 2, 16, seed=0)


def test_errors_are_as_long_as_before_they_were_weighted(part: tuple[np.ndarray, Part]) -> None:
    Z, own = part
    np.testing.assert_allclose(lengths(Z @ own.turn, own.turn), np.linalg.norm(Z, axis=1), rtol=1e-4)


def test_axes_along_which_near_rows_do_not_differ_weigh_little(part: tuple[np.ndarray, Part]) -> None:
    weights = np.linalg.norm(part[1].turn, axis=1)
    assert weights[5] < weights[:5].min() / 2


def test_the_column_tells_how_far_a_row_is_from_its_code(part: tuple[np.ndarray, Part]) -> None:
    Z, own = part
    own.add_column(Z, 2)
    for _ in range(4):
        targets, codes = own.code(Z, 4, True)
        own.gather(targets, codes, 0.5)
        own.refit(targets, codes, shrinks=False)
    codes = own.code(Z, 4, True)[1]
    codebooks, metric = own.settled()
    found = decode(codes, codebooks)
    error = np.linalg.norm(Z - found[:, :-1], axis=1)
    assert np.corrcoef(found[:, -1], error)[0, 1] > 0.5
    assert found[:, -1].mean() == pytest.approx(np.sqrt(SHARE) * error.mean(), rel=0.2)
    np.testing.assert_allclose(found[:, :-1], own.decoded(codes), atol=1e-4)
    np.testing.assert_allclose(metric[:-1, :-1], own.turn)


def test_without_a_column_rows_are_coded_as_they_are(part: tuple[np.ndarray, Part]) -> None:
    Z, own = part
    targets, codes = own.code(Z, 4, True)
    np.testing.assert_allclose(targets, Z @ own.turn)
    np.testing.assert_allclose(decode(codes, own.settled()[0]), own.decoded(codes), atol=1e-4)
