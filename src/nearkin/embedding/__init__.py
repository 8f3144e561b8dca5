"""Vectors from signals: interactions by two towers, comparisons by ordinal embedding. Names are loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

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

__getattr__, __dir__, __all__ = lazily(__name__, __file__)
