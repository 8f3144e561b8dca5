"""The error that no model can beat."""

import numpy as np
import pytest

import nearkin as nk
from nearkin.data.comparisons import comparisons_from_array
from nearkin.data.comparisons.votes import held_out_noise_floor as floor_of
from tests.covering import each


def asked(n_questions: int, answers: int, p: np.ndarray, rng: np.random.Generator) -> nk.Comparisons:
    """Questions (0, 2 q + 1, 2 q + 2), each answered `answers` times, the first pair with chance p[q]."""
    q = np.repeat(np.arange(n_questions), answers)
    near, far = 2 * q + 1, 2 * q + 2
    turned = rng.random(len(q)) > p[q]
    return comparisons_from_array(np.stack([0 * q, np.where(turned, far, near), np.where(turned, near, far)], axis=1))


@each("p", [0.5, 0.7, 0.9, 1.0])
def test_the_noise_floor_is_the_error_of_the_best_model(rng, p):
    answers = asked(4000, 3, np.full(4000, p), rng)
    rows, votes = np.unique(answers.indices, axis=0, return_counts=True)
    for part in (answers, nk.Comparisons(rows, answers.objects, votes)):  # of votes it was .5
        assert floor_of(part)[0] == pytest.approx(1 - p, abs=0.1 if p == 0.5 else 0.015)


def test_the_noise_floor_is_a_lower_bound_where_questions_differ(rng):
    p = rng.uniform(0.5, 1.0, 4000)
    assert 0.1 < floor_of(asked(4000, 4, p, rng))[0] < np.minimum(p, 1 - p).mean()
