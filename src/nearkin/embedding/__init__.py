"""Vectors from signals."""
