"""The rounds of the additive codebooks."""

import numpy as np

from nearkin.quantization.additive import learn


def test_rounds_are_numbered_from_one_and_none_is_worse(rng: np.random.Generator) -> None:
    X = rng.standard_normal((400, 8)).astype(np.float32)
    seen: list[int] = []
    errors: list[float] = []

    def keep(step: int, record: dict) -> None:
        seen.append(step)
        errors.append(record["distortion"])
        assert record["total"] == 3

    learn(X, 2, 16, rounds=3, seed=0, callback=keep)
    assert seen == [1, 2, 3]
    assert errors[0] >= errors[1] >= errors[2] > 0
