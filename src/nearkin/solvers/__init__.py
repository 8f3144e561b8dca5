"""Unconstrained optimization: finite sums by SVRG, SGD, AdaGrad, and full gradients by descent and L-BFGS."""

from nearkin._lazy import lazily
from nearkin.solvers.finite_sum import LBFGS as LBFGS
from nearkin.solvers.finite_sum import SGD as SGD
from nearkin.solvers.finite_sum import SVRG as SVRG
from nearkin.solvers.finite_sum import AdaGrad as AdaGrad
from nearkin.solvers.finite_sum import FiniteSum as FiniteSum
from nearkin.solvers.finite_sum import GradientDescent as GradientDescent
from nearkin.solvers.finite_sum import Objective as Objective
from nearkin.solvers.finite_sum import Plain as Plain
from nearkin.solvers.finite_sum import RowScaled as RowScaled
from nearkin.solvers.finite_sum import Rule as Rule
from nearkin.solvers.finite_sum import Snapshot as Snapshot
from nearkin.solvers.finite_sum import Solution as Solution
from nearkin.solvers.finite_sum import Solver as Solver
from nearkin.solvers.finite_sum import VarianceReduced as VarianceReduced

lazily(__name__, __file__)
