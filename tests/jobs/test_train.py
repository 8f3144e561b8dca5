"""`nearkin train` on small tables: it works, or says before any work why not."""

from pathlib import Path

import numpy as np
import pytest

import nearkin as nk
from nearkin.jobs.train import train_index
from tests.covering import each


def shop(n_rights: int) -> nk.Interactions:
    rng = np.random.default_rng(n_rights)
    left = rng.integers(12, size=3 * n_rights)
    return nk.Interactions.from_pairs(left, np.arange(3 * n_rights) % n_rights)


@each(
    ("n_rights", "loss"),
    [(16, "all-pairs"), (17, "in-batch-softmax"), (40, "all-pairs"), (100, "in-batch-softmax")],
)
def test_every_small_table_gets_an_index(tmp_path: Path, n_rights: int, loss: str) -> None:
    """A layer waited for 8,192 rows, which so small a table never shows in 30 rounds."""
    train_index(shop(n_rights), tmp_path / "idx", n_bytes=2, dim=4, loss=loss, split="none")
    assert len(nk.Index.load(tmp_path / "idx")) == n_rights


def test_too_few_rights_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has 15 items; an index needs at least 16"):
        train_index(shop(15), tmp_path / "idx")
