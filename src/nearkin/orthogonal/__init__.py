"""Optimization on O(d), SO(d) and the Stiefel manifold: one engine for rotations and projections.

Names are loaded on first use, so that a matching alone does not load the optimizers.
"""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "orthogonal_optimizer": "nearkin.orthogonal.network",
        "Importance": "nearkin.orthogonal.stochastic_flow",
        "History": "nearkin.orthogonal.diagnostics",
        "check_gradient": "nearkin.orthogonal.diagnostics",
        "is_orthogonal": "nearkin.orthogonal.diagnostics",
        "GivensDescent": "nearkin.orthogonal.givens_descent",
        "orthogonal_": "nearkin.orthogonal.parametrization",
        "reproject_": "nearkin.orthogonal.parametrization",
        "greedy_matching": "nearkin.orthogonal.matching",
        "max_weight_matching": "nearkin.orthogonal.matching",
        "random_matching": "nearkin.orthogonal.matching",
        "two_opt_matching": "nearkin.orthogonal.matching",
        "MixedOptimizer": "nearkin.orthogonal.network",
        "Adam": "nearkin.orthogonal.optimizer",
        "orthogonal_parametrization": "nearkin.orthogonal.parametrization",
        "RiemannianDescent": "nearkin.orthogonal.riemannian_descent",
        "StochasticFlow": "nearkin.orthogonal.stochastic_flow",
    },
)

if TYPE_CHECKING:
    from nearkin.orthogonal.diagnostics import History as History
    from nearkin.orthogonal.diagnostics import check_gradient as check_gradient
    from nearkin.orthogonal.diagnostics import is_orthogonal as is_orthogonal
    from nearkin.orthogonal.givens_descent import GivensDescent as GivensDescent
    from nearkin.orthogonal.matching import greedy_matching as greedy_matching
    from nearkin.orthogonal.matching import max_weight_matching as max_weight_matching
    from nearkin.orthogonal.matching import random_matching as random_matching
    from nearkin.orthogonal.matching import two_opt_matching as two_opt_matching
    from nearkin.orthogonal.network import MixedOptimizer as MixedOptimizer
    from nearkin.orthogonal.network import orthogonal_optimizer as orthogonal_optimizer
    from nearkin.orthogonal.optimizer import Adam as Adam
    from nearkin.orthogonal.parametrization import orthogonal_ as orthogonal_
    from nearkin.orthogonal.parametrization import orthogonal_parametrization as orthogonal_parametrization
    from nearkin.orthogonal.parametrization import reproject_ as reproject_
    from nearkin.orthogonal.riemannian_descent import RiemannianDescent as RiemannianDescent
    from nearkin.orthogonal.stochastic_flow import Importance as Importance
    from nearkin.orthogonal.stochastic_flow import StochasticFlow as StochasticFlow
