"""Unconstrained optimization."""
