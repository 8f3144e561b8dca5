"""`nearkin evaluate`: an index against exact neighbours, against labels, and against other hashing methods."""

from nearkin.pipeline.evaluate.evaluate import evaluate_folder as evaluate_folder
from nearkin.pipeline.evaluate.neighbours import exact_neighbors as exact_neighbors
from nearkin.pipeline.evaluate.neighbours import judge_neighbors as judge_neighbors
from nearkin.pipeline.evaluate.neighbours import search_in_batches as search_in_batches
from nearkin.pipeline.evaluate.neighbours import search_rows as search_rows
