"""Two towers: interactions to embeddings of both sides. The other names are objects for its parameters."""

from nearkin.embedding.two_tower.als import ALS as ALS
from nearkin.embedding.two_tower.baselines import InBatchHinge as InBatchHinge
from nearkin.embedding.two_tower.baselines import InBatchSoftmax as InBatchSoftmax
from nearkin.embedding.two_tower.baselines import SampledBCE as SampledBCE
from nearkin.embedding.two_tower.baselines import SOGram as SOGram
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax as CosineSoftmax
from nearkin.embedding.two_tower.cosine_softmax import SphereSweeps as SphereSweeps
from nearkin.embedding.two_tower.estimator import TwoTower as TwoTower
from nearkin.embedding.two_tower.gauss_newton import GaussNewton as GaussNewton
from nearkin.embedding.two_tower.gradient import LBFGS as LBFGS
from nearkin.embedding.two_tower.gradient import Adam as Adam
from nearkin.embedding.two_tower.gradient import GradientDescent as GradientDescent
from nearkin.embedding.two_tower.gradient import SubBlocks as SubBlocks
from nearkin.embedding.two_tower.joint import Joint as Joint
from nearkin.embedding.two_tower.objective import AllPairs as AllPairs
from nearkin.embedding.two_tower.settings import Auto as Auto
from nearkin.embedding.two_tower.settings import Indexed as Indexed
from nearkin.embedding.two_tower.towers import Tower as Tower
from nearkin.embedding.two_tower.towers import feature_towers as feature_towers
