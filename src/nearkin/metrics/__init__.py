"""Judging: retrieval, quantization and ordinal measures."""

from nearkin.metrics.quantization import compression_ratio as compression_ratio
from nearkin.metrics.quantization import distortion as distortion
from nearkin.metrics.quantization import relative_distortion as relative_distortion
from nearkin.metrics.retrieval import average_precision as average_precision
from nearkin.metrics.retrieval import label_mean_average_precision as label_mean_average_precision
from nearkin.metrics.retrieval import label_relevance as label_relevance
from nearkin.metrics.retrieval import mean_average_precision as mean_average_precision
from nearkin.metrics.retrieval import mean_reciprocal_rank as mean_reciprocal_rank
from nearkin.metrics.retrieval import ndcg as ndcg
from nearkin.metrics.retrieval import precision as precision
from nearkin.metrics.retrieval import recall as recall
from nearkin.metrics.retrieval import recall_1_at_k as recall_1_at_k
from nearkin.metrics.retrieval import recall_k_at_k as recall_k_at_k
from nearkin.metrics.retrieval import relevance as relevance
