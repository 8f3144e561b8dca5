"""The loss over all m x n pairs at the cost of m + n, for any embeddings; also used by `TwoTower`."""

from nearkin._lazy import lazily
from nearkin.embedding.all_pairs.loss import AllPairsLoss as AllPairsLoss
from nearkin.embedding.all_pairs.loss import AllPairsPoint as AllPairsPoint
from nearkin.embedding.all_pairs.loss import gram as gram

lazily(__name__, __file__)
