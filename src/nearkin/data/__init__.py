"""Reading signals and vectors."""

from nearkin.data.columns import read_column as read_column
from nearkin.data.columns import read_neighbors as read_neighbors
from nearkin.data.comparison_split import split_comparisons as split_comparisons
from nearkin.data.comparison_synthetic import comparisons_from_labels as comparisons_from_labels
from nearkin.data.comparison_synthetic import comparisons_from_vectors as comparisons_from_vectors
from nearkin.data.comparison_synthetic import flip_answers as flip_answers
from nearkin.data.comparison_votes import count_contradictions as count_contradictions
from nearkin.data.comparison_votes import merge_votes as merge_votes
from nearkin.data.comparisons import comparisons_from_array as comparisons_from_array
from nearkin.data.comparisons import comparisons_from_names as comparisons_from_names
from nearkin.data.comparisons import read_comparisons as read_comparisons
from nearkin.data.feature_tables import read_features as read_features
from nearkin.data.interaction_split import Parts as Parts
from nearkin.data.interaction_split import k_core as k_core
from nearkin.data.interaction_split import split_by_time as split_by_time
from nearkin.data.interaction_split import split_given as split_given
from nearkin.data.interaction_split import split_leave_last_out as split_leave_last_out
from nearkin.data.interaction_split import split_random as split_random
from nearkin.data.interaction_synthetic import planted_interactions as planted_interactions
from nearkin.data.interactions import read_interactions as read_interactions
from nearkin.data.signals import holds_pairs as holds_pairs
from nearkin.data.signals import kind_of as kind_of
from nearkin.data.tables import read_table as read_table
from nearkin.data.vectors import VectorFile as VectorFile
from nearkin.data.vectors import open_vectors as open_vectors
from nearkin.data.vectors import read_vectors as read_vectors
