"""Two towers: interactions to embeddings of both sides. The other names are objects for its parameters."""

from nearkin.embedding.two_tower.batch_losses.in_batch_hinge import InBatchHinge as InBatchHinge
from nearkin.embedding.two_tower.batch_losses.in_batch_softmax import InBatchSoftmax as InBatchSoftmax
from nearkin.embedding.two_tower.batch_losses.sampled_bce import SampledBCE as SampledBCE
from nearkin.embedding.two_tower.choice import Auto as Auto
from nearkin.embedding.two_tower.choice import Indexed as Indexed
from nearkin.embedding.two_tower.cosine_softmax import CosineSoftmax as CosineSoftmax
from nearkin.embedding.two_tower.estimator import TwoTower as TwoTower
from nearkin.embedding.two_tower.objective import AllPairs as AllPairs
from nearkin.embedding.two_tower.solvers.adam import Adam as Adam
from nearkin.embedding.two_tower.solvers.als import ALS as ALS
from nearkin.embedding.two_tower.solvers.full_batch import LBFGS as LBFGS
from nearkin.embedding.two_tower.solvers.full_batch import GradientDescent as GradientDescent
from nearkin.embedding.two_tower.solvers.gauss_newton import GaussNewton as GaussNewton
from nearkin.embedding.two_tower.solvers.joint import Joint as Joint
from nearkin.embedding.two_tower.solvers.sogram import SOGram as SOGram
from nearkin.embedding.two_tower.solvers.sphere import SphereSweeps as SphereSweeps
from nearkin.embedding.two_tower.solvers.sub_blocks import SubBlocks as SubBlocks
from nearkin.embedding.two_tower.towers import Tower as Tower
