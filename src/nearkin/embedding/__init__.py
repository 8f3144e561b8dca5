"""Vectors from signals."""

from nearkin.embedding.all_pairs import AllPairsLoss as AllPairsLoss
from nearkin.embedding.all_pairs import AllPairsPoint as AllPairsPoint
from nearkin.embedding.pair_losses import CustomPairLoss as CustomPairLoss
from nearkin.embedding.two_tower import TwoTower as TwoTower
