"""Optimization on O(d), SO(d) and the Stiefel manifold: one engine for rotations and projections.

Names are loaded on first use: who takes a matching alone does not wait for what the parametrization needs.
"""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "orthogonal_optimizer": "nearkin.orthogonal.auto",
        "Importance": "nearkin.orthogonal.colouring",
        "History": "nearkin.orthogonal.diagnostics",
        "check_gradient": "nearkin.orthogonal.diagnostics",
        "is_orthogonal": "nearkin.orthogonal.diagnostics",
        "GivensDescent": "nearkin.orthogonal.givens_descent",
        "orthogonal_": "nearkin.orthogonal.initialize",
        "reproject_": "nearkin.orthogonal.initialize",
        "greedy_matching": "nearkin.orthogonal.matching",
        "max_weight_matching": "nearkin.orthogonal.matching",
        "random_matching": "nearkin.orthogonal.matching",
        "two_opt_matching": "nearkin.orthogonal.matching",
        "MixedOptimizer": "nearkin.orthogonal.mixed",
        "Adam": "nearkin.orthogonal.moments",
        "orthogonal_parametrization": "nearkin.orthogonal.parametrization",
        "RiemannianDescent": "nearkin.orthogonal.riemannian_descent",
        "StochasticFlow": "nearkin.orthogonal.stochastic_flow",
    },
)

if TYPE_CHECKING:
    from nearkin.orthogonal.auto import orthogonal_optimizer as orthogonal_optimizer
    from nearkin.orthogonal.colouring import Importance as Importance
    from nearkin.orthogonal.diagnostics import History as History
    from nearkin.orthogonal.diagnostics import check_gradient as check_gradient
    from nearkin.orthogonal.diagnostics import is_orthogonal as is_orthogonal
    from nearkin.orthogonal.givens_descent import GivensDescent as GivensDescent
    from nearkin.orthogonal.initialize import orthogonal_ as orthogonal_
    from nearkin.orthogonal.initialize import reproject_ as reproject_
    from nearkin.orthogonal.matching import greedy_matching as greedy_matching
    from nearkin.orthogonal.matching import max_weight_matching as max_weight_matching
    from nearkin.orthogonal.matching import random_matching as random_matching
    from nearkin.orthogonal.matching import two_opt_matching as two_opt_matching
    from nearkin.orthogonal.mixed import MixedOptimizer as MixedOptimizer
    from nearkin.orthogonal.moments import Adam as Adam
    from nearkin.orthogonal.parametrization import orthogonal_parametrization as orthogonal_parametrization
    from nearkin.orthogonal.riemannian_descent import RiemannianDescent as RiemannianDescent
    from nearkin.orthogonal.stochastic_flow import StochasticFlow as StochasticFlow
