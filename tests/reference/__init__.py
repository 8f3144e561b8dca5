"""Slow twins: the same results by the most direct route, to hold the fast paths against."""
