"""Judging: retrieval, quantization and ordinal measures."""

from nearkin.metrics.ranking import ranking_metrics as ranking_metrics
from nearkin.metrics.ranking import recommend as recommend
