"""`nearkin evaluate`: an index against exact neighbours, against labels, and against other hashing methods.

Names are loaded on first use: a search needs nothing of the studies.
"""

from typing import TYPE_CHECKING

from nearkin._lazy import lazily

if TYPE_CHECKING:
    from nearkin.pipeline.evaluate.evaluate import evaluate_folder as evaluate_folder
    from nearkin.pipeline.evaluate.neighbours import exact_neighbors as exact_neighbors
    from nearkin.pipeline.evaluate.neighbours import judge_neighbors as judge_neighbors
    from nearkin.pipeline.evaluate.neighbours import search_in_batches as search_in_batches
    from nearkin.pipeline.evaluate.neighbours import search_rows as search_rows

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "evaluate_folder": "nearkin.pipeline.evaluate.evaluate",
        "exact_neighbors": "nearkin.pipeline.evaluate.neighbours",
        "judge_neighbors": "nearkin.pipeline.evaluate.neighbours",
        "search_in_batches": "nearkin.pipeline.evaluate.neighbours",
        "search_rows": "nearkin.pipeline.evaluate.neighbours",
    },
)
