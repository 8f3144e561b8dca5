"""Judging: retrieval, quantization and ordinal measures."""

from nearkin.metrics.hamming import hamming_distances as hamming_distances
from nearkin.metrics.hamming import hamming_histograms as hamming_histograms
from nearkin.metrics.hamming import hamming_mean_average_precision as hamming_mean_average_precision
from nearkin.metrics.hamming import hamming_precision_at_k as hamming_precision_at_k
from nearkin.metrics.hamming import hamming_radius_precision as hamming_radius_precision
from nearkin.metrics.hamming import spherical_histograms as spherical_histograms
from nearkin.metrics.hamming import stable_sort_average_precision as stable_sort_average_precision
