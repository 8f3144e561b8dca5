"""Vectors from signals: interactions by two towers, comparisons by ordinal embedding. Names are loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "AllPairsLoss": "nearkin.embedding.all_pairs",
        "AllPairsPoint": "nearkin.embedding.all_pairs",
        "SoftmaxLoss": "nearkin.embedding.all_pairs.softmax",
        "graph_filter": "nearkin.embedding.baselines",
        "item_knn": "nearkin.embedding.baselines",
        "popularity": "nearkin.embedding.baselines",
        "sparse_ease": "nearkin.embedding.baselines",
        "CustomPairLoss": "nearkin.embedding.all_pairs",
        "OrdinalEmbedding": "nearkin.embedding.ordinal",
        "ask_function": "nearkin.embedding.ordinal",
        "Adam": "nearkin.embedding.two_tower",
        "ALS": "nearkin.embedding.two_tower",
        "AllPairs": "nearkin.embedding.two_tower",
        "CosineSoftmax": "nearkin.embedding.two_tower",
        "SphereSweeps": "nearkin.embedding.two_tower",
        "Auto": "nearkin.embedding.two_tower",
        "GaussNewton": "nearkin.embedding.two_tower",
        "GradientDescent": "nearkin.embedding.two_tower",
        "InBatchHinge": "nearkin.embedding.two_tower",
        "InBatchSoftmax": "nearkin.embedding.two_tower",
        "Indexed": "nearkin.embedding.two_tower",
        "Joint": "nearkin.embedding.two_tower",
        "LBFGS": "nearkin.embedding.two_tower",
        "SampledBCE": "nearkin.embedding.two_tower",
        "SOGram": "nearkin.embedding.two_tower",
        "SubBlocks": "nearkin.embedding.two_tower",
        "Tower": "nearkin.embedding.two_tower",
        "feature_towers": "nearkin.embedding.two_tower",
        "TwoTower": "nearkin.embedding.two_tower",
    },
)

if TYPE_CHECKING:
    from nearkin.embedding.all_pairs import AllPairsLoss as AllPairsLoss
    from nearkin.embedding.all_pairs import AllPairsPoint as AllPairsPoint
    from nearkin.embedding.all_pairs import CustomPairLoss as CustomPairLoss
    from nearkin.embedding.all_pairs.softmax import SoftmaxLoss as SoftmaxLoss
    from nearkin.embedding.baselines import graph_filter as graph_filter
    from nearkin.embedding.baselines import item_knn as item_knn
    from nearkin.embedding.baselines import popularity as popularity
    from nearkin.embedding.baselines import sparse_ease as sparse_ease
    from nearkin.embedding.ordinal import OrdinalEmbedding as OrdinalEmbedding
    from nearkin.embedding.ordinal import ask_function as ask_function
    from nearkin.embedding.two_tower import ALS as ALS
    from nearkin.embedding.two_tower import LBFGS as LBFGS
    from nearkin.embedding.two_tower import Adam as Adam
    from nearkin.embedding.two_tower import AllPairs as AllPairs
    from nearkin.embedding.two_tower import Auto as Auto
    from nearkin.embedding.two_tower import CosineSoftmax as CosineSoftmax
    from nearkin.embedding.two_tower import GaussNewton as GaussNewton
    from nearkin.embedding.two_tower import GradientDescent as GradientDescent
    from nearkin.embedding.two_tower import InBatchHinge as InBatchHinge
    from nearkin.embedding.two_tower import InBatchSoftmax as InBatchSoftmax
    from nearkin.embedding.two_tower import Indexed as Indexed
    from nearkin.embedding.two_tower import Joint as Joint
    from nearkin.embedding.two_tower import SampledBCE as SampledBCE
    from nearkin.embedding.two_tower import SOGram as SOGram
    from nearkin.embedding.two_tower import SphereSweeps as SphereSweeps
    from nearkin.embedding.two_tower import SubBlocks as SubBlocks
    from nearkin.embedding.two_tower import Tower as Tower
    from nearkin.embedding.two_tower import TwoTower as TwoTower
    from nearkin.embedding.two_tower import feature_towers as feature_towers
