"""Losses of a batch of observed pairs: one file a loss."""
