"""Vectors from signals: interactions by two towers, comparisons by ordinal embedding. Names are loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.embedding.all_pairs import AllPairsLoss as AllPairsLoss
    from nearkin.embedding.all_pairs import AllPairsPoint as AllPairsPoint
    from nearkin.embedding.baselines import graph_filter as graph_filter
    from nearkin.embedding.baselines import item_knn as item_knn
    from nearkin.embedding.baselines import popularity as popularity
    from nearkin.embedding.baselines import sparse_ease as sparse_ease
    from nearkin.embedding.ordinal.estimator import OrdinalEmbedding as OrdinalEmbedding
    from nearkin.embedding.ordinal.groups import compare_groups as compare_groups
    from nearkin.embedding.two_tower.als import ALS as ALS
    from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax as CosineSoftmax
    from nearkin.embedding.two_tower.cosine_softmax import SphereSweeps as SphereSweeps
    from nearkin.embedding.two_tower.estimator import TwoTower as TwoTower
    from nearkin.embedding.two_tower.gradient import Adam as Adam
    from nearkin.embedding.two_tower.gradient import GaussNewton as GaussNewton
    from nearkin.embedding.two_tower.in_batch_softmax import InBatchSoftmax as InBatchSoftmax
    from nearkin.embedding.two_tower.joint import Joint as Joint
    from nearkin.embedding.two_tower.objective import AllPairs as AllPairs
    from nearkin.embedding.two_tower.towers import Tower as Tower

lazily(__name__, __file__)
