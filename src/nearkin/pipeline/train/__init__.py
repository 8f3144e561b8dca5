"""`nearkin train`: a table of pairs to towers and a searchable index, learned together."""

from nearkin.pipeline.left_side import search_left as search_left
from nearkin.pipeline.train.train import train_index as train_index
