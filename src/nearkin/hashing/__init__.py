"""Vectors to bits."""
