"""What solvers that train a `TowerPair` share: what they show, and when its index is worth judging."""

import torch
from torch import Tensor

from nearkin.contracts import PhasedIndex
from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.embedding.two_tower.training import AbstractSolver


class AbstractTowerSolver(AbstractSolver):
    """A solver whose towers, and index if there is one, are `pair`."""

    pair: TowerPair

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self.pair.embeddings()

    def ranked(self) -> tuple[Tensor, Tensor]:
        """P (m, k) and Q (n, k) as they are searched: Q through the index, which learns nothing from it."""
        P, Q = self.pair.embeddings()
        index = self.pair.index
        if index is None:
            return P, Q
        mode = index.training
        with torch.no_grad():
            Q = index.eval()(Q)[0]
        index.train(mode)
        return P, Q

    def notes(self) -> dict[str, float]:
        """The last step's distortion, where there is an index."""
        return {} if self.pair.index is None else {"distortion": self.pair.distortion}

    def ready(self) -> bool:
        """Whether the index quantizes yet; one without phases always does."""
        return not isinstance(self.pair.index, PhasedIndex) or self.pair.index.phase == "train"
