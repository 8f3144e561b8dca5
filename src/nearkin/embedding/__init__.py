"""Vectors from signals: interactions by two towers, comparisons by ordinal embedding. Names are loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "AllPairsLoss": "nearkin.embedding.all_pairs",
        "AllPairsPoint": "nearkin.embedding.all_pairs",
        "CustomPairLoss": "nearkin.embedding.all_pairs.pair_losses",
        "OrdinalEmbedding": "nearkin.embedding.ordinal",
        "TwoTower": "nearkin.embedding.two_tower",
    },
)

if TYPE_CHECKING:
    from nearkin.embedding.all_pairs import AllPairsLoss as AllPairsLoss
    from nearkin.embedding.all_pairs import AllPairsPoint as AllPairsPoint
    from nearkin.embedding.all_pairs.pair_losses import CustomPairLoss as CustomPairLoss
    from nearkin.embedding.ordinal import OrdinalEmbedding as OrdinalEmbedding
    from nearkin.embedding.two_tower import TwoTower as TwoTower
