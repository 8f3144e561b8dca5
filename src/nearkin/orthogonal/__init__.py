"""Optimization on O(d), SO(d) and the Stiefel manifold: one engine for rotations and projections."""
