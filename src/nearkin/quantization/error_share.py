"""How much of a code's error belongs into distances: the share of |e|^2 by which most neighbours are kept."""

import numpy as np

from nearkin.metrics.neighbours import ExactNeighbours

SHARE = 0.65  # with which codebooks are learned: all of |e|^2 is right on average, but not for the nearest
_SHARES = (
    SHARE,
    0.5,
    0.33,
    0.2,
    0.1,
)  # of equals the first; rows drawn between near ones would ask for more than others
_NEIGHBOURS = 10


def best_share(rows: np.ndarray, queries: np.ndarray, decoded: np.ndarray, errors: np.ndarray) -> float:
    """The share by which codes keep most of the ten rows (n, d) nearest to queries (m, d), all in one space.

    `decoded` (n, d) are what codes stand for, `errors` (n,) what they say of |e|^2. The codes stay as they are.
    """
    truth = ExactNeighbours.of(rows, queries, _NEIGHBOURS)
    distances = np.square(decoded).sum(axis=1) - 2 * queries @ decoded.T
    last = truth.ids.shape[1] - 1

    def kept(share: float) -> float:
        return truth.kept(np.argpartition(distances + np.float32(share) * errors, last, axis=1)[:, : last + 1])

    return max(_SHARES, key=kept)
