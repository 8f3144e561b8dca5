"""What every loss of a batch of observed pairs is called with, and what it keeps."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from nearkin.embedding.two_tower.tower_pair import TowerPair


class PairBatch(NamedTuple):
    """Observed pairs and what the towers make of them."""

    rows: Tensor  # (b,) left numbers
    columns: Tensor  # (b,) right numbers
    places: Tensor  # (b,) numbers of the pairs
    P: Tensor  # (b, k) embeddings of `rows`, with a graph
    Q: Tensor  # (b, k) embeddings of `columns`, through the index if there is one


class AbstractBatchLoss(ABC):
    """A loss of a batch of observed pairs, as a mean over the pairs."""

    @abstractmethod
    def __call__(self, batch: PairBatch, pair: TowerPair, generator: torch.Generator) -> Tensor:
        """The batch's loss; more rows may be drawn with `generator` and embedded by `pair`."""

    def state(self) -> dict[str, Tensor]:
        """What it remembers from batch to batch."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Put back a `state`."""
        del state
