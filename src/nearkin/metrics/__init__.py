"""Judging: retrieval, quantization and ordinal measures."""

from nearkin.metrics.ordinal import triplet_error as triplet_error
