"""Optimization on O(d), SO(d) and the Stiefel manifold: one engine for rotations and projections."""

from nearkin.orthogonal.matching import greedy_matching as greedy_matching
from nearkin.orthogonal.matching import max_weight_matching as max_weight_matching
from nearkin.orthogonal.matching import random_matching as random_matching
from nearkin.orthogonal.matching import two_opt_matching as two_opt_matching
