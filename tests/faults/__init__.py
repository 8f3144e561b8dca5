"""Damage on purpose: mutated inputs, limits, and what must hold. `python -m tests.faults` runs the long campaign."""
