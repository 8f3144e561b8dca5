"""What solvers that train a `TowerPair` share: what they show, and when its index is worth judging."""

from torch import Tensor

from nearkin.embedding.two_tower.tower_pair import TowerPair
from nearkin.embedding.two_tower.training import AbstractSolver


class AbstractTowerSolver(AbstractSolver):
    """A solver whose towers, and index if there is one, are `pair`."""

    pair: TowerPair

    def embeddings(self) -> tuple[Tensor, Tensor]:
        return self.pair.embeddings()

    def ranked(self) -> tuple[Tensor, Tensor]:
        return self.pair.ranked()

    def notes(self) -> dict[str, float]:
        return self.pair.notes()

    def ready(self) -> bool:
        return self.pair.index_is_ready()
