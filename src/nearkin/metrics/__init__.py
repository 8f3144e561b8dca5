"""Measures of retrieval, quantization and ordinal embedding. Names are loaded on first use."""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.metrics.hamming import distortion as distortion
    from nearkin.metrics.hamming import hamming_radius_precision as hamming_radius_precision
    from nearkin.metrics.neighbours import knn_recall as knn_recall
    from nearkin.metrics.ordinal import triplet_error as triplet_error
    from nearkin.metrics.ranking import list_metrics as list_metrics
    from nearkin.metrics.ranking import prefix_cooccurrence as prefix_cooccurrence
    from nearkin.metrics.ranking import ranking_metrics as ranking_metrics
    from nearkin.metrics.ranking import recommend as recommend
    from nearkin.metrics.retrieval import average_precision as average_precision
    from nearkin.metrics.retrieval import label_relevance as label_relevance
    from nearkin.metrics.retrieval import mean_average_precision as mean_average_precision
    from nearkin.metrics.retrieval import ndcg as ndcg
    from nearkin.metrics.retrieval import precision as precision
    from nearkin.metrics.retrieval import recall as recall
    from nearkin.metrics.retrieval import recall_k_at_k as recall_k_at_k
    from nearkin.metrics.retrieval import without_self as without_self

lazily(__name__, __file__)
