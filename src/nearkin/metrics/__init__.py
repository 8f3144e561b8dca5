"""Judging: retrieval, quantization and ordinal measures."""
