"""The rounds of the additive codebooks."""

import numpy as np

from nearkin.quantization.additive import decode, learn, relaxed


def test_rounds_are_numbered_from_one_and_the_last_is_the_best(rng: np.random.Generator) -> None:
    X = rng.standard_normal((400, 8)).astype(np.float32)
    seen: list[int] = []
    errors: list[float] = []

    def keep(step: int, record: dict) -> None:
        seen.append(step)
        errors.append(record["distortion"])
        assert record["total"] == 3

    learn(X, 2, 16, rounds=3, seed=0, callback=keep)
    assert seen == [1, 2, 3]
    assert errors[0] >= errors[2] > 0
    assert errors[1] >= errors[2]


def test_rows_move_by_the_spread_of_the_error_and_less_as_rounds_are_done(rng: np.random.Generator) -> None:
    X = (rng.standard_normal((4000, 3)) * [1, 2, 4]).astype(np.float32)
    codebooks = rng.standard_normal((2, 16, 3)).astype(np.float32)
    codes = rng.integers(0, 16, (4000, 2)).astype(np.int32)
    error = (X - decode(codes, codebooks)).std(axis=0)
    for done in (0.0, 0.75):
        moved = relaxed(X, codes, codebooks, done, rng) - X
        np.testing.assert_allclose(moved.std(axis=0), np.sqrt(1 - done) * error, rtol=0.1)
        np.testing.assert_allclose(moved.mean(axis=0), 0, atol=0.1 * error.max())
    assert np.array_equal(relaxed(X, codes, codebooks, 1.0, rng), X)
