"""Optimization on O(d), SO(d) and the Stiefel manifold: one engine for rotations and projections.

Names are loaded on first use, so that a matching alone does not load the optimizers.
"""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.orthogonal.averaging import orthogonal_average as orthogonal_average
    from nearkin.orthogonal.block_rotation import BlockRotation as BlockRotation
    from nearkin.orthogonal.diagnostics import is_orthogonal as is_orthogonal
    from nearkin.orthogonal.givens_descent import GivensDescent as GivensDescent
    from nearkin.orthogonal.matching import greedy_matching as greedy_matching
    from nearkin.orthogonal.matching import max_weight_matching as max_weight_matching
    from nearkin.orthogonal.matching import random_matching as random_matching
    from nearkin.orthogonal.network import MixedOptimizer as MixedOptimizer
    from nearkin.orthogonal.network import orthogonal_optimizer as orthogonal_optimizer
    from nearkin.orthogonal.optimizer import Adam as Adam
    from nearkin.orthogonal.parametrization import orthogonal_ as orthogonal_
    from nearkin.orthogonal.parametrization import orthogonal_parametrization as orthogonal_parametrization
    from nearkin.orthogonal.riemannian_descent import RiemannianDescent as RiemannianDescent
    from nearkin.orthogonal.stochastic_flow import StochasticFlow as StochasticFlow

lazily(__name__, __file__)
